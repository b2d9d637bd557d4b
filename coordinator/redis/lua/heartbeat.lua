-- Renews the lease. Sets the expiry of the group to the longest retention after the lease's end (KIP-211, rule: group-expiry).
-- KEYS meta leases member, then every key of the group
-- Reply OK | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses leases, prelude
local bad = lost() or fenced(KEYS[3])
if bad then return bad end
local lease_end = renew(KEYS[2])
local answer = reply()
for i = 1, #KEYS do redis.call('PEXPIREAT', KEYS[i], ms(lease_end + longest('retention'))) end
return answer
