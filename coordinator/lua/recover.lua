-- After a loss of state: a new nonce, all lane epochs, incarnations and leases void, and for one session only
-- assertions (spec 7, Recovering). Positions that Redis still has stay; proofs from elsewhere raise them.
-- KEYS meta leases topics events batches leaving applications targets assignment, then owners segments stable of each partition
-- ARGV[2] new nonce, ARGV[3] why, ARGV[4..] "topic id count partition position" of each partition, "-" for no proof
-- Reply {OK, nonce, seq} | UNPROVEN partition | SCHEMA. Nothing happens where another member has recovered the group already.
local bad = lost()
if bad and bad[1] == 'SCHEMA' then return bad end
if not bad then return reply() end
for i = 4, #ARGV do
  local topic, _, _, partition, position = string.match(ARGV[i], '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  if position == '-' and redis.call('EXISTS', KEYS[3 * i - 1]) == 0 then return { 'UNPROVEN', topic .. '-' .. partition } end
end
redis.call('DEL', KEYS[2], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9])
redis.call('HDEL', META, 'occasion')
redis.call('HSETNX', META, 'reset_epoch', '0')
redis.call('HSETNX', META, 'commit_seq', '0')
redis.call('HSET', META, 'schema', '1', 'nonce', ARGV[2], 'run_id', run_id(), 'epochs', '0',
  'recovering_until', ms(now_ms() + tonumber(call.session)))
for i = 4, #ARGV do
  local topic, id, count, partition, position = string.match(ARGV[i], '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  local k = 3 * i - 2
  local keys = { owners = KEYS[k], segments = KEYS[k + 1], stable = KEYS[k + 2] }
  redis.call('DEL', keys.owners)
  redis.call('HSET', KEYS[3], topic, id .. ' ' .. count)
  if redis.call('EXISTS', keys.segments) == 0 then redis.call('HSET', keys.segments, '0000000000000000-7fffffffffffffff', '0') end
  if position == '-' then position = '0' end
  raise(keys, partition, { { lo = '0000000000000000', hi = '7fffffffffffffff', position = position } })
end
event(KEYS[4], 'recover', ARGV[3])
return reply()
