-- Frees ranges that are assigned to other members, if the new owner of a range works (rule: release-to-a-waiting-owner).
-- KEYS meta leases member events batches leaving, then owners of each partition
-- ARGV[2..] "lo-hi new_owner;..." of each partition
-- Reply released: number of ranges | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses events, leases, ownership, prelude
local bad = lost() or recovering() or fenced(KEYS[3])
if bad then return bad end
local released = 0

local function waiting(member)
  return redis.call('SISMEMBER', KEYS[6], member) == 0 and not takeable(KEYS[2], KEYS[5], member)
end

local ranges = free_ranges(5, function(wanted)
  local yes = wanted and waiting(wanted.a)
  if yes then released = released + 1 end
  return yes
end)
if released > 0 then event(KEYS[4], 'revoked', 'released in order', ranges_text(ranges)) end
renew(KEYS[2])
return reply('released', released)
