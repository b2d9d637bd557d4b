-- Removes strikes: the struck offsets have been read since, or an operator releases them.
-- KEYS meta events strikes
-- ARGV[2] the reason of an operator, "" if the record was read; ARGV[3..] "topic partition lo-hi"
-- Reply forgiven: number of removed strikes | ABSENT | LOST | SCHEMA
local bad = lost()
if bad then return bad end
local gone = 0
for i = 3, #ARGV do
  if redis.call('HDEL', KEYS[3], ARGV[i]) == 1 then
    gone = gone + 1
    if ARGV[2] ~= '' then event(KEYS[2], 'release', ARGV[i] .. ': ' .. ARGV[2]) end
  end
end
return reply('forgiven', gone)
