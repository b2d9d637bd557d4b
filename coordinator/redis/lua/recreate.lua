-- Writes new positions after a topic was deleted and created again, or after its log was cut. The lane epochs become
-- void (rule: named-data-loss). Deletes the stored log end, since the new log has another. Writes the leader epoch of a
-- cut log together with its positions: so no later assertion of the log before the cut counts (rule: leader-epoch-facts).
-- In a log that was cut, only positions above the place move, back to it.
-- Removes the failing records of these partitions: their offsets may belong to other records now.
-- A.places: {topic, id, count, partition, position} of each partition,
-- A.extents: "<leader epoch>@<log end> reset=... topic=..." of each partition, "" if unknown
-- Reply OK | ABSENT | LOST | SCHEMA
-- Uses arguments, damage, leader_epochs, names, ownership, prelude, slices, strikes
local bad = lost()
if bad then return bad end
check_places()
local lost_by = {}

-- The segments of one partition, and the lowest position.
local function moved(keys, p)
  local known = string.match(redis.call('HGET', K.topics, p.topic) or p.id, '^(%S+)')
  local segments, lowest = known == p.id and ranges_at(keys.segments, OFFSET) or {}, p.position
  if #segments == 0 then segments = { { lo = '0000000000000000', hi = '7fffffffffffffff', value = p.position } } end
  for _, s in ipairs(segments) do
    if less(p.position, s.value) then s.value = p.position end
    if less(s.value, lowest) then lowest = s.value end
  end
  return coalesce(segments, {}), lowest
end

local renewed = {}
for i, p in ipairs(A.places) do
  require_argument(A.extents[i] == '' or leader_epoch_of(A.extents[i]), 'leader epoch', A.extents[i])
  p.segments, p.lowest = moved(K.partitions[i], p)
  note_ranges_of_owners(lost_by, K.partitions[i].owners)
  renewed[p.topic .. ' ' .. p.partition] = true
end
forgive_replaced()
for _, field in ipairs(redis.call('HKEYS', K.failing)) do
  if renewed[string.match(field, '^%S+ %S+')] then redis.call('HDEL', K.failing, field) end
end
for i, p in ipairs(A.places) do
  local keys, extent = K.partitions[i], A.extents[i]
  redis.call('DEL', keys.owners, keys.ics, keys.reserved, handed_key(keys.owners))
  replace(keys.segments, p.segments)
  redis.call('HSET', keys.stable, p.partition, p.lowest)
  redis.call('HDEL', keys.log_end, p.partition)
  if extent ~= '' and replaces_leader_epoch(redis.call('HGET', keys.epoch, p.partition), extent) then
    redis.call('HSET', keys.epoch, p.partition, extent)
  end
  redis.call('HSET', K.topics, p.topic, p.id .. ' ' .. p.count)
end
write_lost_events(K.events, lost_by, 'the log is another one, or was cut')
return reply()
