-- Gives partitions their first positions, where they have none; founds the group if it does not exist (spec 7, Start).
-- KEYS meta topics events, then segments stable of each partition
-- ARGV[2] nonce of a new group ("" if the group must be there: a late caller must not found it after a loss),
--   ARGV[3..] "topic id count partition position" of each partition
-- Reply {OK, nonce, seq, number of partitions that were given positions} | ABSENT | LOST | SCHEMA
if redis.call('EXISTS', META) == 1 then
  local bad = lost()
  if bad then return bad end
elseif ARGV[2] == '' then
  return { 'ABSENT' }
else
  redis.call('HSET', META, 'schema', '1', 'nonce', ARGV[2], 'run_id', run_id(), 'commit_seq', '0',
    'reset_epoch', '0', 'epochs', '0', 'created_at', ms(now_ms()))
  event(KEYS[3], 'found', 'first positions of a new group')
  for k = 4, #KEYS do redis.call('DEL', KEYS[k]) end  -- what an older group of this name may have left
end
local given = 0
for i = 3, #ARGV do
  local topic, id, count, partition, position = string.match(ARGV[i], '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  local segments, stable = KEYS[2 * i - 2], KEYS[2 * i - 1]
  local known, partitions = string.match(redis.call('HGET', KEYS[2], topic) or id .. ' 0', '^(%S+) (%d+)$')
  if known == id and less(partitions, count) then redis.call('HSET', KEYS[2], topic, id .. ' ' .. count) end
  if known == id and redis.call('EXISTS', segments) == 0 then
    redis.call('HSET', segments, '0000000000000000-7fffffffffffffff', position)
    redis.call('HSET', stable, partition, position)
    given = given + 1
  end
end
return reply(given)
