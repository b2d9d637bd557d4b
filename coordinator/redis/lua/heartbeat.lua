-- Renews the lease. Sets the expiry of the group to the longest retention after the lease's end (KIP-211, rule: group-expiry).
-- Stops the clock of the member's batch, or starts it where none runs (rule: batch-clock).
-- A.reading: whether a task of an authorised batch may read
-- Reply OK | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses leases, names, prelude
local bad = lost() or fenced(K.member)
if bad then return bad end
if A.reading then
  redis.call('ZADD', K.batches, 'NX', ms(now_ms() + tonumber(call.longest)), call.member)
else
  redis.call('ZREM', K.batches, call.member)
end
local expires = renew(K.leases) + longest('retention')
local answer = reply()
for _, key in ipairs(EVERY_KEY) do redis.call('PEXPIREAT', key, ms(expires)) end
return answer
