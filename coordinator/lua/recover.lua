-- After a loss of state: a new nonce, all lane epochs, incarnations and leases void, and for one session only
-- assertions (spec 7, Recovering). Positions that Redis still has stay; proofs from elsewhere raise them.
-- KEYS meta leases topics events batches leaving applications targets assignment, then owners segments stable of each partition
-- ARGV[2] new nonce, ARGV[3] why, ARGV[4..] "topic id count partition position" of each partition, "-" for no proof
-- Reply {OK, nonce, seq} | UNPROVEN partition | SCHEMA. Nothing happens where another member has recovered the group already.
local bad = lost()
if bad and bad[1] == 'SCHEMA' then return bad end
if not bad then return reply() end
local survived = redis.call('EXISTS', META) == 1
local placed = {}
for i = 4, #ARGV do
  local topic, id, count, partition, position = string.match(ARGV[i], '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  local k = 3 * i - 2
  local recorded, recorded_count = string.match(redis.call('HGET', KEYS[3], topic) or '', '^(%S+) (%d+)$')
  local missing = redis.call('EXISTS', KEYS[k + 1]) == 0
  -- What the group had not read yet had no position to lose: a new topic, a topic that grew. It is placed later.
  local never_read = survived and (not recorded or (recorded == id and tonumber(partition) >= tonumber(recorded_count)))
  if position == '-' and missing and not never_read then return { 'UNPROVEN', topic .. '-' .. partition } end
  if position ~= '-' or not missing then
    placed[#placed + 1] = { keys = { owners = KEYS[k], segments = KEYS[k + 1], stable = KEYS[k + 2] }, missing = missing,
      topic = topic, text = not recorded and id .. ' ' .. count, partition = partition,
      position = (position == '-' or (recorded and recorded ~= id)) and '0' or position }
  end
end
redis.call('DEL', KEYS[2], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9])
redis.call('HSETNX', META, 'reset_epoch', '0')
redis.call('HSETNX', META, 'commit_seq', '0')
redis.call('HSET', META, 'schema', '1', 'nonce', ARGV[2], 'run_id', run_id(), 'epochs', '0',
  'recovering_until', ms(now_ms() + tonumber(call.session)))
for _, p in ipairs(placed) do
  redis.call('DEL', p.keys.owners)
  if p.text then redis.call('HSET', KEYS[3], p.topic, p.text) end
  if p.missing then redis.call('HSET', p.keys.segments, '0000000000000000-7fffffffffffffff', '0') end
  raise(p.keys, p.partition, { { lo = '0000000000000000', hi = '7fffffffffffffff', position = p.position } })
end
event(KEYS[4], 'recover', ARGV[3])
return reply()
