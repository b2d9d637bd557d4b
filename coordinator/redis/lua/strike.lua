-- Strikes slices that the tasks of A.member had not ended when its lease or longest batch ended, once for each loss.
-- Reply OK | ABSENT | LOST | SCHEMA
-- Uses leases, names, prelude, strikes
local bad = lost()
if bad then return bad end
if not takeable(K.leases, K.batches, A.member) then return reply() end
strike(K.working, K.strikes, K.events, A.member, hangs(K.batches, A.member))
return reply()
