-- Records an assignment if its occasion still holds: any member may compute one (rule: first-assignment-wins).
-- A.occasion: its occasion, A.protocol, A.failure: the error of its assignor ("" if it did not fail),
-- A.assignment: member, JSON of its ranges, ...
-- Reply generation, 0 if the occasion has passed | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses events, leases, names, prelude
local bad = lost() or fenced(K.member) or recovering()
if bad then return bad end
grant_grace(K.leases)
local now_due = occasion(K)
if now_due ~= A.occasion or now_due == redis.call('HGET', META, 'occasion') then
  renew(K.leases)
  return reply('generation', 0)
end
local generation = redis.call('HINCRBY', META, 'generation', 1)
redis.call('HSET', META, 'occasion', now_due, 'leader', call.member, 'protocol', A.protocol, 'generation_at', ms(now_ms()))
local assigned_before = redis.call('HKEYS', K.assignment)
table.sort(assigned_before)
for _, before in ipairs(assigned_before) do
  local its_end, hung = end_of_lease(K.leases, before), end_of_batch(K.batches, before)
  if its_end and tonumber(its_end) < now_ms() then
    event(K.events, 'expire', 'its lease has ended: others may acquire its ranges', nil, before)
  elseif hung and tonumber(hung) < now_ms() then
    event(K.events, 'expire', 'its batch takes longer than longestBatch: others may acquire its ranges', nil, before)
  end
end
redis.call('DEL', K.assignment)
fill(K.assignment, A.assignment)
local by = A.failure == '' and A.protocol or 'grouped, because ' .. A.protocol .. ' failed,'
event(K.events, 'plan', 'generation ' .. generation .. ' by ' .. by .. ' for ' .. #A.assignment / 2 .. ' members')
if A.failure == '' then
  redis.call('HDEL', META, 'failure')
else
  redis.call('HSET', META, 'failure', A.failure)
  event(K.events, 'assignor', A.protocol .. ' of ' .. call.member .. ' failed: ' .. A.failure .. '; grouped assigns whole partitions'
    .. ' until members, their assignors, topics or policies change')
end
renew(K.leases)
return reply('generation', generation)
