-- Creates a group at positions and individual commits (ICs) of another consumer: `coop-kafka import`.
-- A.nonce: of the group, A.why: for the event, A.places: {topic, id, count, partition, position} of each partition,
-- A.ics: "20-29 31-31" of each partition, "" for none
-- Reply founded: 1, or 0 if Redis already holds something of the group; then nothing is written | SCHEMA
-- Uses arguments, founding, names, prelude, progress
local bad = other_schema()
if bad then return bad end
check_places()
local done = {}
for i, text in ipairs(A.ics) do
  done[i] = text == '' and NOTHING or parsed_offsets(text)
  require_argument(done[i], 'offsets', text)
end
if remains() then return { 'OK', 'founded', '0' } end
create_group(A.nonce, A.why)
for i, p in ipairs(A.places) do
  local position, ics = joined(p.position, NOTHING, done[i], {})
  redis.call('HSET', K.topics, p.topic, p.id .. ' ' .. p.count)
  write_progress(K.partitions[i], p.partition, { { lo = '0000000000000000', hi = '7fffffffffffffff', position = position, ics = ics } })
end
return reply('founded', '1')
