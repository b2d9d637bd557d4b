-- Makes working members standbys, so that others get their ranges (rule: drain-hands-over). Each of them goes on with a
-- range until its next owner waits for it. Does nothing if no other member would work.
-- KEYS meta leases events batches leaving assignment standbys
-- ARGV[2] why, ARGV[3..] members
-- Reply drained: number of members that are standbys now, others: number of the other working members
--   | RECOVERING | ABSENT | LOST | SCHEMA
-- Uses events, leases, names, prelude
local bad = lost() or recovering()
if bad then return bad end
local keys = { leases = KEYS[2], batches = KEYS[4], leaving = KEYS[5], standbys = KEYS[7] }
local wanted, chosen, others = {}, {}, 0
for i = 3, #ARGV do wanted[ARGV[i]] = true end
for _, member in ipairs(working_members(keys)) do
  if wanted[member] then chosen[#chosen + 1] = member else others = others + 1 end
end
if others == 0 or #chosen == 0 then return reply('drained', 0, 'others', others) end
for _, member in ipairs(chosen) do
  redis.call('HSET', KEYS[7], member, 'standby')
  redis.call('HDEL', KEYS[6], member)
  event(KEYS[3], 'drain', ARGV[2], nil, member)
end
redis.call('HDEL', META, 'occasion')  -- if all of them come back to work, the same occasion needs another assignment
return reply('drained', #chosen, 'others', others)
