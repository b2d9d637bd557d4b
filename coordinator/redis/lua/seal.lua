-- Adds true ends of a batch to its seal: of all its tasks before the last one ends, or of each task before it ends
-- (rule: seal-before-sink). A repeated seal changes nothing: the first ends of each task count.
-- KEYS meta leases member
-- ARGV[2] digest of the batch, ARGV[3] "topic partition lo-hi offset;..." early ends
-- Reply sealed: 1, or "" if the member authorised another batch last | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses arguments, damage, leases, prelude
local bad = lost() or fenced(KEYS[3])
if bad then return bad end
local read = 1
for from, topic, partition, hashes, offset, past in string.gmatch(ARGV[3], '()(%S+) (%S+) (%S+) ([^%s;]+);()') do
  local sound = from == read and string.find(topic, NAME) and number(partition) and hashes_of(hashes).sound
  require_argument(sound and is_position(offset), 'ends', ARGV[3])
  read = past
end
require_argument(read == #ARGV[3] + 1, 'ends', ARGV[3])
local before = redis.call('HMGET', KEYS[3], 'authorized', 'seal')
local same, seal = before[1] == ARGV[2], before[2] or ''
if same and not (before[2] and string.find(';' .. seal, ';' .. ARGV[3], 1, true)) then
  redis.call('HSET', KEYS[3], 'seal', seal .. ARGV[3])
end
renew(KEYS[2])
return reply('sealed', same and '1' or '')
