-- Deletes a group for an operator: all its keys at once. Refused while a member's lease runs.
-- KEYS meta leases, then every other key of the group
-- ARGV[2] "delete", or "ask" to count the keys only
-- Reply keys: their number, without nonce and seq | BUSY member lease_end now | SCHEMA
-- Uses damage, leases, prelude
local bad = other_schema() or busy(KEYS[2])
if bad then return bad end
check_kinds(true)
local there = 0
for _, key in ipairs(KEYS) do there = there + redis.call(ARGV[2] == 'ask' and 'EXISTS' or 'DEL', key) end
return { 'OK', 'keys', there }
