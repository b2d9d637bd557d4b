-- Replaces the keys of the group by a copy that an operator loads. No server has the run id of a copy. So the next member
-- finds a loss of state, and recovers (rule: recover-by-proof). Refused while a member's lease runs.
-- A.why: for the event, A.kept_ms: ms until the copy expires, A.hashes: [field, value, ...] of each key of the copy,
-- A.seen: "nonce commit_seq" before the caller listed the keys
-- Reply {OK} alone | BUSY member lease_end now | SUPERSEDED | SCHEMA
-- Uses damage, events, leases, names, prelude
local bad = other_schema() or busy(K.leases) or worked_since(A.seen)
if bad then return bad end
check_kinds(true)
redis.call('DEL', META, K.leases)
for _, key in ipairs(K.others) do redis.call('DEL', key) end
for i, flat in ipairs(A.hashes) do
  redis.call('DEL', K.copied[i])  -- another restore may have come since the keys were listed
  fill(K.copied[i], flat)
end
redis.call('HSET', META, 'run_id', COPIED)
event(K.events, 'restore', A.why)
for _, key in ipairs(K.copied) do redis.call('PEXPIRE', key, A.kept_ms) end
redis.call('PEXPIRE', K.events, A.kept_ms)
return { 'OK' }
