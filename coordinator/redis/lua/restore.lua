-- Replaces the keys of the group by a copy that an operator loads. No server has the run id of a copy. So the next member
-- finds a loss of state, and recovers (rule: recover-by-proof). Refused while a member's lease runs.
-- KEYS meta leases events, then every other key of the group, then those of the copy
-- ARGV[2] why, ARGV[3] number of the copy's KEYS, ARGV[4] ms until they expire, ARGV[5..] JSON [field, value, ...] of each
-- Reply {OK} alone | BUSY member lease_end now | SCHEMA
-- Uses damage, events, leases, names, prelude
local bad = other_schema() or busy(KEYS[2])
if bad then return bad end
check_kinds(true)
local copy = {}
for i = 5, #ARGV do copy[i - 4] = cjson.decode(ARGV[i]) end
local before = #KEYS - tonumber(ARGV[3])
for i = 1, before do
  if KEYS[i] ~= KEYS[3] then redis.call('DEL', KEYS[i]) end
end
for i, flat in ipairs(copy) do fill(KEYS[before + i], flat) end
redis.call('HSET', META, 'run_id', COPIED)
event(KEYS[3], 'restore', ARGV[2])
for i = before + 1, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[4]) end
redis.call('PEXPIRE', KEYS[3], ARGV[4])
return { 'OK' }
