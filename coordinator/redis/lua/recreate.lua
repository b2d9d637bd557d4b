-- Writes new positions after a topic was deleted and created again, or after its log was cut. The lane epochs become
-- void (rule: named-data-loss). Deletes the stored log end, since the new log has another. Writes the leader epoch of a
-- cut log together with its positions: so no later assertion of the log before the cut counts (rule: leader-epoch-facts).
-- Positions of the same topic never rise: the stable offset may have fallen since the caller read it.
-- Removes the failing records of these partitions: their offsets may belong to other records now.
-- KEYS meta topics events strikes failing, then owners segments ics stable end epoch reserved of each partition
-- ARGV[2] JSON ["<leader epoch>@<log end> reset=... topic=...", ...], one for each partition, "" if unknown,
--   ARGV[3..] "topic id count partition position" of each partition
-- Reply OK | ABSENT | LOST | SCHEMA
-- Uses arguments, damage, leader_epochs, ownership, prelude, slices, strikes
local bad = lost()
if bad then return bad end
local places = positions_of_arguments(3)
local extents, lost_by = cjson.decode(ARGV[2]), {}

local function not_above_stable(key, topic, id, partition, position)
  local known, stable = string.match(redis.call('HGET', KEYS[2], topic) or id, '^(%S+)'), redis.call('HGET', key, partition)
  if not stable or known ~= id then return position end
  check(number(stable), partition .. ' of ' .. key)
  return less(stable, position) and stable or position
end

for i = 3, #ARGV do
  require_argument(extents[i - 2] == '' or leader_epoch_of(extents[i - 2]), 'leader epoch', extents[i - 2])
  local topic, id, _, partition, position = unpack(places[i])
  places[i][5] = not_above_stable(KEYS[7 * i - 12], topic, id, partition, position)
  note_ranges_of_owners(lost_by, KEYS[7 * i - 15])
end
forgive_replaced(KEYS[2], KEYS[4], KEYS[5], KEYS[3], 3)
local renewed = {}
for i = 3, #ARGV do renewed[places[i][1] .. ' ' .. places[i][4]] = true end
for _, field in ipairs(redis.call('HKEYS', KEYS[5])) do
  if renewed[string.match(field, '^%S+ %S+')] then redis.call('HDEL', KEYS[5], field) end
end
for i = 3, #ARGV do
  local topic, id, count, partition, position = unpack(places[i])
  local k = 7 * i - 15
  redis.call('DEL', KEYS[k], KEYS[k + 2], KEYS[k + 6], handed_key(KEYS[k]))
  replace(KEYS[k + 1], { { lo = '0000000000000000', hi = '7fffffffffffffff', value = position } })
  redis.call('HSET', KEYS[k + 3], partition, position)
  redis.call('HDEL', KEYS[k + 4], partition)
  if extents[i - 2] ~= '' and replaces_leader_epoch(redis.call('HGET', KEYS[k + 5], partition), extents[i - 2]) then
    redis.call('HSET', KEYS[k + 5], partition, extents[i - 2])
  end
  redis.call('HSET', KEYS[2], topic, id .. ' ' .. count)
end
write_lost_events(KEYS[3], lost_by, 'the log is another one, or was cut')
return reply()
