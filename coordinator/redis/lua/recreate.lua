-- Writes new positions after a topic was deleted and created again, or after its log was cut. The lane epochs become
-- void (rule: named-data-loss). Deletes the stored log end, since the new log has another.
-- KEYS meta topics events strikes, then owners segments ics stable end of each partition
-- ARGV[2..] "topic id count partition position" of each partition
-- Reply OK | ABSENT | LOST | SCHEMA
-- Uses arguments, ownership, prelude, strikes
local bad = lost()
if bad then return bad end
local places = positions_of_arguments(2)
local lost_by = {}
for i = 2, #ARGV do note_ranges_of_owners(lost_by, KEYS[5 * i - 5]) end
forgive_replaced(KEYS[2], KEYS[4], KEYS[3], 2)
for i = 2, #ARGV do
  local topic, id, count, partition, position = unpack(places[i])
  local k = 5 * i - 5
  redis.call('DEL', KEYS[k], KEYS[k + 2])
  replace(KEYS[k + 1], { { lo = '0000000000000000', hi = '7fffffffffffffff', value = position } })
  redis.call('HSET', KEYS[k + 3], partition, position)
  redis.call('HDEL', KEYS[k + 4], partition)
  redis.call('HSET', KEYS[2], topic, id .. ' ' .. count)
end
write_lost_events(KEYS[3], lost_by, 'the log is another one, or was cut')
return reply()
