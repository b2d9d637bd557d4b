-- Strikes slices that a member's tasks had not ended when its lease or longest batch ended, once for each loss.
-- KEYS meta leases batches events working strikes
-- ARGV[2] the member
-- Reply OK | ABSENT | LOST | SCHEMA
-- Uses leases, prelude, strikes
local bad = lost()
if bad then return bad end
if not takeable(KEYS[2], KEYS[3], ARGV[2]) then return reply() end
strike(KEYS[5], KEYS[6], KEYS[4], ARGV[2], hangs(KEYS[3], ARGV[2]))
return reply()
