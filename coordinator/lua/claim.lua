-- Raises positions to what a member may assert without the fence (spec 7). No lease, no epoch is asked for.
-- KEYS meta topics, then owners segments stable of each partition
-- ARGV[2] reset epoch of the offset, ARGV[3..] "topic id partition lo-hi position ;..." of each partition
-- Reply {OK, nonce, seq} | ABSENT | LOST | SCHEMA
local bad = lost()
if bad then return bad end
if redis.call('HGET', META, 'reset_epoch') ~= ARGV[2] then return reply() end
for i = 3, #ARGV do
  local topic, id, partition, lanes = string.match(ARGV[i], '^(%S+) (%S+) (%S+) (.*)$')
  if string.match(redis.call('HGET', KEYS[2], topic) or '', '^(%S+)') == id then
    local facts = from_text(lanes)
    for _, fact in ipairs(facts) do fact.position = fact.a end
    raise({ owners = KEYS[3 * i - 6], segments = KEYS[3 * i - 5], stable = KEYS[3 * i - 4] }, partition, facts)
  end
end
return reply()
