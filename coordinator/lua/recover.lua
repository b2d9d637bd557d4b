-- After a loss of state: a new nonce, all lane epochs, incarnations and leases void, and for one session only
-- assertions (spec 7, Recovering). Positions that Redis still has stay; proofs from elsewhere raise them.
-- KEYS meta leases topics events, then owners segments stable of each partition
-- ARGV[2] new nonce, ARGV[3] why, ARGV[4..] "topic id count partition position" of each partition, "-" for no proof
-- Reply {OK, nonce, seq} | UNPROVEN partition | SCHEMA. Nothing happens where another member has recovered the group already.
local bad = lost()
if bad and bad[1] == 'SCHEMA' then return bad end
if not bad then return reply() end

-- Partitions that were added to a topic since the group last looked had no position to lose: they are placed later.
local function known(topic) return string.match(redis.call('HGET', KEYS[3], topic) or '', '^(%S+) (%d+)$') end

local placed = {}
for i = 4, #ARGV do
  local topic, id, count, partition, position = string.match(ARGV[i], '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  local k, known_id, known_count = 3 * i - 7, known(topic)
  local added = known_id == id and tonumber(partition) >= tonumber(known_count)
  local missing = redis.call('EXISTS', KEYS[k + 1]) == 0
  if position == '-' and missing and not added then return { 'UNPROVEN', topic .. '-' .. partition } end
  if position ~= '-' or not missing then
    placed[#placed + 1] = { keys = { owners = KEYS[k], segments = KEYS[k + 1], stable = KEYS[k + 2] }, missing = missing,
      topic = topic, text = known_id == id and id .. ' ' .. known_count or id .. ' ' .. count,
      partition = partition, position = position == '-' and '0' or position }
  end
end
redis.call('DEL', KEYS[2])
redis.call('HSETNX', META, 'reset_epoch', '0')
redis.call('HSETNX', META, 'commit_seq', '0')
redis.call('HSET', META, 'schema', '1', 'nonce', ARGV[2], 'run_id', run_id(), 'epochs', '0',
  'recovering_until', ms(now_ms() + tonumber(call.session)))
for _, p in ipairs(placed) do
  redis.call('DEL', p.keys.owners)
  redis.call('HSET', KEYS[3], p.topic, p.text)
  if p.missing then redis.call('HSET', p.keys.segments, '0000000000000000-7fffffffffffffff', '0') end
  raise(p.keys, p.partition, { { lo = '0000000000000000', hi = '7fffffffffffffff', position = p.position } })
end
event(KEYS[4], 'recover', ARGV[3])
return reply()
