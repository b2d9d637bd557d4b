-- Removes strikes or failing records: a member has read their offsets, or an operator releases them.
-- KEYS meta events, strikes or failing
-- ARGV[2] the reason of an operator, "" if a member read the offsets;
--   ARGV[3..] field value ... of each: one with another value stays, "" means any value
-- Reply forgiven: number of those that were removed | ABSENT | LOST | SCHEMA
-- Uses events, prelude
local bad = lost()
if bad then return bad end
local forgiven = 0
for i = 3, #ARGV, 2 do
  local same = ARGV[i + 1] == '' or redis.call('HGET', KEYS[3], ARGV[i]) == ARGV[i + 1]
  if same and redis.call('HDEL', KEYS[3], ARGV[i]) == 1 then
    forgiven = forgiven + 1
    if ARGV[2] ~= '' then event(KEYS[2], 'release', ARGV[i] .. ': ' .. ARGV[2]) end
  end
end
return reply('forgiven', forgiven)
