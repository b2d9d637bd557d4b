-- Removes strikes: a member has read the struck offsets, or an operator releases them.
-- KEYS meta events strikes
-- ARGV[2] the reason of an operator, "" if a member read the offsets; ARGV[3..] "topic partition lo-hi"
-- Reply forgiven: number of removed strikes | ABSENT | LOST | SCHEMA
-- Uses events, prelude
local bad = lost()
if bad then return bad end
local forgiven = 0
for i = 3, #ARGV do
  if redis.call('HDEL', KEYS[3], ARGV[i]) == 1 then
    forgiven = forgiven + 1
    if ARGV[2] ~= '' then event(KEYS[2], 'release', ARGV[i] .. ': ' .. ARGV[2]) end
  end
end
return reply('forgiven', forgiven)
