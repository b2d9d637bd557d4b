-- Raises positions to asserted ones, without the fence (rule: assert-beginnings). Checks neither lane epoch nor lease.
-- Ignores the facts of a partition whose stored leader epoch is newer: its log may have been cut since
-- (rule: leader-epoch-facts).
-- A.reset: reset epoch of the offset, A.facts: {topic, id, partition, lanes, leader_epoch} of each partition, lanes
--   "lo-hi position[,first-last...] ;...", leader_epoch nil if unknown
-- Reply OK | ABSENT | LOST | SCHEMA
-- Uses arguments, damage, leader_epochs, names, prelude, progress
local bad = lost() or before_reset(A.reset)
if bad then return bad end
if redis.call('HGET', META, 'reset_epoch') ~= A.reset then return reply() end
local moved = {}

local function is_of_this_log(epoch, key, topic, partition, id)
  require_argument(not epoch or number(epoch), 'leader epoch', epoch or '')
  if string.match(redis.call('HGET', K.topics, topic) or '', '^(%S+)') ~= id then return false end
  local stored = redis.call('HGET', key, partition)
  check(leader_epoch_of(stored) or not stored, partition .. ' of ' .. key)
  return not epoch or not has_newer_leader_epoch(stored, epoch, A.reset, id)
end

for i, of_partition in ipairs(A.facts) do
  local topic, id, partition, lanes = lanes_of_argument(of_partition)
  local keys = K.partitions[i]
  if is_of_this_log(of_partition.leader_epoch, keys.epoch, topic, partition, id) then
    local facts = from_text(lanes)
    for _, fact in ipairs(facts) do fact.position, fact.offsets = fact_of(fact.a) end
    ranges_of(keys, 'owners', OWNER)
    moved[#moved + 1] = { keys = keys, partition = partition, segments = raised(keys, facts) }
  end
end
for _, m in ipairs(moved) do write_progress(m.keys, m.partition, m.segments) end
return reply()
