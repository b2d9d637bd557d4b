-- Records growths that a loss of state removed, and the ends of older partitions after a grace. The first record wins.
-- KEYS meta growth events
-- ARGV[2..] "topic old new", "id seen until[ end,...]" of each growth
-- Reply OK | ABSENT | LOST | SCHEMA
-- Uses events, prelude
local bad = lost()
if bad then return bad end
for i = 2, #ARGV, 2 do
  local known = redis.call('HGET', KEYS[2], ARGV[i])
  local without, ends = string.match(ARGV[i + 1], '^(%S+ %S+ %S+) ?(.*)$')
  if not known or (known == without and ends ~= '') then
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
    event(KEYS[3], 'growth', ARGV[i] .. (ends ~= '' and ': the grace is over at ' .. ends or ': recorded again'))
  end
end
return reply()
