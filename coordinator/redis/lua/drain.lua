-- Makes working members standbys, so that others get their ranges (rule: drain-hands-over). Each of them goes on with a
-- range until its next owner waits for it. Does nothing if no other member would work.
-- A.why: for the events, A.members
-- Reply drained: number of members that are standbys now, others: number of the other working members
--   | RECOVERING | ABSENT | LOST | SCHEMA
-- Uses events, leases, names, prelude
local bad = lost() or recovering()
if bad then return bad end
local wanted, chosen, others = {}, {}, 0
for _, member in ipairs(A.members) do wanted[member] = true end
for _, member in ipairs(working_members(K)) do
  if wanted[member] then chosen[#chosen + 1] = member else others = others + 1 end
end
if others == 0 or #chosen == 0 then return reply('drained', 0, 'others', others) end
for _, member in ipairs(chosen) do
  redis.call('HSET', K.standbys, member, 'standby')
  redis.call('HDEL', K.assignment, member)
  event(K.events, 'drain', A.why, nil, member)
end
redis.call('HDEL', META, 'occasion')  -- if all of them come back to work, the same occasion needs another assignment
return reply('drained', #chosen, 'others', others)
