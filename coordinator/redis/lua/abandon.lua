-- Frees ranges of the caller that a batch leaves out, at their lane epochs. So no commit of the batch covers them, not even
-- a commit of a later incarnation that knows only its checkpoint (rule: omit-what-was-skipped).
-- A.ranges: "lo-hi epoch;..." of each partition
-- Reply OK | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses events, leases, names, ownership, prelude
local bad = lost() or fenced(K.member) or recovering()
if bad then return bad end
local ranges = free_ranges(function(wanted, epoch) return wanted and epoch == wanted.a end)
if #ranges > 0 then event(K.events, 'revoked', 'left out of a batch: members died or hung over it', ranges_text(ranges)) end
renew(K.leases)
return reply()
