-- Deletes a group for an operator: all its keys at once. Refused while a member's lease runs.
-- A.count_only: whether to delete nothing, A.seen: "nonce commit_seq" before the caller listed the keys
-- Reply keys: their number, without nonce and seq | BUSY member lease_end now | SUPERSEDED | SCHEMA
-- Uses damage, leases, names, prelude
local bad = other_schema() or busy(K.leases) or worked_since(A.seen)
if bad then return bad end
check_kinds(true)
local there = 0
for _, key in ipairs(EVERY_KEY) do there = there + redis.call(A.count_only and 'EXISTS' or 'DEL', key) end
return { 'OK', 'keys', there }
