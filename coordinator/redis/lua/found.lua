-- Creates a group at positions and individual commits (ICs) of another consumer: `coop-kafka import`.
-- KEYS meta topics events, then segments ics stable of each partition
-- ARGV[2] nonce, ARGV[3] why, ARGV[4] JSON ["20-29 31-31", ...]: the ICs of each partition, "" for none,
--   ARGV[5..] "topic id count partition position" of each partition
-- Reply founded: 1, or 0 if Redis already holds something of the group; then nothing is written | SCHEMA
-- Uses arguments, founding, prelude, progress
local bad = other_schema()
if bad then return bad end
local places, done = positions_of_arguments(5), {}
for i, text in ipairs(cjson.decode(ARGV[4])) do
  done[i] = text == '' and NOTHING or parsed_offsets(text)
  require_argument(done[i], 'offsets', text)
end
if remains() then return { 'OK', 'founded', '0' } end
create_group(ARGV[2], ARGV[3])
for i = 5, #ARGV do
  local topic, id, count, partition, position = unpack(places[i])
  local keys = { segments = KEYS[3 * i - 11], ics = KEYS[3 * i - 10], stable = KEYS[3 * i - 9] }
  local ics
  position, ics = joined(position, NOTHING, done[i - 4], {})
  redis.call('HSET', KEYS[2], topic, id .. ' ' .. count)
  write_progress(keys, partition, { { lo = '0000000000000000', hi = '7fffffffffffffff', position = position, ics = ics } })
end
return reply('founded', '1')
