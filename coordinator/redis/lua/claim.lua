-- Raises positions to asserted ones, without the fence (rule: assert-beginnings). Checks neither lease nor lane epoch.
-- KEYS meta topics, then owners segments ics stable of each partition
-- ARGV[2] reset epoch of the offset, ARGV[3..] "topic id partition lo-hi position[,first-last...] ;..." of each partition
-- Reply OK | ABSENT | LOST | SCHEMA
-- Uses arguments, damage, prelude, progress
local bad = lost() or before_reset(ARGV[2])
if bad then return bad end
if redis.call('HGET', META, 'reset_epoch') ~= ARGV[2] then return reply() end
local moved = {}
for i = 3, #ARGV do
  local topic, id, partition, lanes = lanes_of_argument(ARGV[i])
  if string.match(redis.call('HGET', KEYS[2], topic) or '', '^(%S+)') == id then
    local facts = from_text(lanes)
    for _, fact in ipairs(facts) do fact.position, fact.offsets = fact_of(fact.a) end
    local k = 4 * i - 9
    local keys = { owners = KEYS[k], segments = KEYS[k + 1], ics = KEYS[k + 2], stable = KEYS[k + 3] }
    ranges_of(keys, 'owners', OWNER)
    moved[#moved + 1] = { keys = keys, partition = partition, segments = raised(keys, facts) }
  end
end
for _, m in ipairs(moved) do write_progress(m.keys, m.partition, m.segments) end
return reply()
