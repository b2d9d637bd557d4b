-- Takes strikes back: what was struck has been read since, or an operator releases it.
-- KEYS meta events strikes
-- ARGV[2] why an operator does it, "" if the record was read; ARGV[3..] "topic partition lo-hi"
-- Reply {OK, nonce, seq, number of strikes taken back} | ABSENT | LOST | SCHEMA
local bad = lost()
if bad then return bad end
local gone = 0
for i = 3, #ARGV do
  if redis.call('HDEL', KEYS[3], ARGV[i]) == 1 then
    gone = gone + 1
    if ARGV[2] ~= '' then event(KEYS[2], 'release', ARGV[i] .. ': ' .. ARGV[2]) end
  end
end
return reply(gone)
