-- Removes strikes or failing records: a member has read their offsets, or an operator releases them.
-- A.why: the reason of an operator, "" if a member read the offsets,
-- A.records: field, value, ... of each: one with another value stays, "" means any value
-- Reply forgiven: number of those that were removed | ABSENT | LOST | SCHEMA
-- Uses events, names, prelude
local bad = lost()
if bad then return bad end
local forgiven = 0
for i = 1, #A.records, 2 do
  local field, value = A.records[i], A.records[i + 1]
  local same = value == '' or redis.call('HGET', K.records, field) == value
  if same and redis.call('HDEL', K.records, field) == 1 then
    forgiven = forgiven + 1
    if A.why ~= '' then event(K.events, 'release', field .. ': ' .. A.why) end
  end
end
return reply('forgiven', forgiven)
