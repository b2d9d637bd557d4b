-- Raises positions to asserted ones, without the fence (rule: assert-beginnings). Checks neither lane epoch nor lease.
-- Ignores the facts of a partition whose stored leader epoch is newer: its log may have been cut since
-- (rule: leader-epoch-facts).
-- KEYS meta topics, then owners segments ics stable epoch of each partition
-- ARGV[2] reset epoch of the offset, ARGV[3] "3 - ..." leader epochs of the facts, one for each partition, "-" if unknown,
--   ARGV[4..] "topic id partition lo-hi position[,first-last...] ;..." of each partition
-- Reply OK | ABSENT | LOST | SCHEMA
-- Uses arguments, damage, leader_epochs, names, prelude, progress
local bad = lost() or before_reset(ARGV[2])
if bad then return bad end
if redis.call('HGET', META, 'reset_epoch') ~= ARGV[2] then return reply() end
local leader_epochs, moved = {}, {}
for epoch in string.gmatch(ARGV[3], '%S+') do leader_epochs[#leader_epochs + 1] = epoch end

local function is_of_this_log(epoch, key, topic, partition, id)
  require_argument(epoch and (epoch == '-' or number(epoch)), 'leader epoch', epoch or ARGV[3])
  if string.match(redis.call('HGET', KEYS[2], topic) or '', '^(%S+)') ~= id then return false end
  local stored = redis.call('HGET', key, partition)
  check(leader_epoch_of(stored) or not stored, partition .. ' of ' .. key)
  return epoch == '-' or not has_newer_leader_epoch(stored, epoch, ARGV[2], id)
end

for i = 4, #ARGV do
  local topic, id, partition, lanes = lanes_of_argument(ARGV[i])
  local k = 5 * i - 17
  if is_of_this_log(leader_epochs[i - 3], KEYS[k + 4], topic, partition, id) then
    local facts = from_text(lanes)
    for _, fact in ipairs(facts) do fact.position, fact.offsets = fact_of(fact.a) end
    local keys = { owners = KEYS[k], segments = KEYS[k + 1], ics = KEYS[k + 2], stable = KEYS[k + 3] }
    ranges_of(keys, 'owners', OWNER)
    moved[#moved + 1] = { keys = keys, partition = partition, segments = raised(keys, facts) }
  end
end
for _, m in ipairs(moved) do write_progress(m.keys, m.partition, m.segments) end
return reply()
