-- Renews the lease. Sets the expiry of the group to the longest retention after the lease's end (KIP-211, rule: group-expiry).
-- Stops the clock of the member's batch, or starts it where none runs (rule: batch-clock).
-- KEYS meta leases member batches, then every other key of the group
-- ARGV[2] 1 while a task of an authorised batch may read, else ""
-- Reply OK | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses leases, names, prelude
local bad = lost() or fenced(KEYS[3])
if bad then return bad end
if ARGV[2] == '1' then
  redis.call('ZADD', KEYS[4], 'NX', ms(now_ms() + tonumber(call.longest)), call.member)
else
  redis.call('ZREM', KEYS[4], call.member)
end
local expires = renew(KEYS[2]) + longest('retention')
local answer = reply()
for i = 1, #KEYS do redis.call('PEXPIREAT', KEYS[i], ms(expires)) end
return answer
