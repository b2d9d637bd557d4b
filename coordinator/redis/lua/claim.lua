-- Raises positions to asserted ones, without the fence (rule: assert-beginnings). Checks neither lane epoch nor lease.
-- Ignores the facts of a partition whose stored leader epoch is newer: its log may have been cut since
-- (rule: leader-epoch-facts).
-- A.reset: reset epoch of the offset, A.ids: topic -> id, A.facts: "lo-hi position[,first-last...] ;..." of each partition,
-- A.leader_epochs: of the facts of each partition, "-" if unknown
-- Reply OK | ABSENT | LOST | SCHEMA
-- Uses arguments, damage, leader_epochs, names, prelude, progress
local bad = lost() or before_reset(A.reset)
if bad then return bad end
if redis.call('HGET', META, 'reset_epoch') ~= A.reset then return reply() end
local moved = {}

local function is_of_this_log(epoch, key, topic, partition, id)
  require_argument(epoch == '-' or number(epoch), 'leader epoch', epoch)
  if string.match(redis.call('HGET', K.topics, topic) or '', '^(%S+)') ~= id then return false end
  local stored = redis.call('HGET', key, partition)
  check(leader_epoch_of(stored) or not stored, partition .. ' of ' .. key)
  return epoch == '-' or not has_newer_leader_epoch(stored, epoch, A.reset, id)
end

for i, keys in ipairs(K.partitions) do
  local topic, partition, id = place_of(keys.owners)
  if is_of_this_log(A.leader_epochs[i], keys.epoch, topic, partition, id) then
    local facts = from_text(A.facts[i])
    for _, fact in ipairs(facts) do fact.position, fact.offsets = fact_of(fact.a) end
    ranges_of(keys, 'owners', OWNER)
    moved[#moved + 1] = { keys = keys, partition = partition, segments = raised(keys, facts) }
  end
end
for _, m in ipairs(moved) do write_progress(m.keys, m.partition, m.segments) end
return reply()
