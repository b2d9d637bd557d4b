-- Records growths that a loss of state removed, and the ends of older partitions after a grace. The first record wins.
-- A.growths: "topic old new", "id seen until[ end,...]", ...
-- Reply OK | ABSENT | LOST | SCHEMA
-- Uses events, names, prelude
local bad = lost()
if bad then return bad end
for i = 1, #A.growths, 2 do
  local name, text = A.growths[i], A.growths[i + 1]
  local known = redis.call('HGET', K.growth, name)
  local without, ends = string.match(text, '^(%S+ %S+ %S+) ?(.*)$')
  if not known or (known == without and ends ~= '') then
    redis.call('HSET', K.growth, name, text)
    event(K.events, 'growth', name .. (ends ~= '' and ': the grace is over at ' .. ends or ': recorded again'))
  end
end
return reply()
