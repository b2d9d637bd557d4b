-- An operator loads a copy of the group: its positions replace what there is. Its run id is no server's, so whoever comes
-- next finds a loss of state, takes a new nonce, and raises positions by what proves more (spec 7, Redis gone back).
-- Refused while a member's lease runs.
-- KEYS meta leases events, then every other key that the group has, then those of the copy
-- ARGV[2] why, ARGV[3] how many of KEYS are the copy's, ARGV[4] ms that they are kept, ARGV[5..] JSON [field, value, ...] of each
-- Reply {OK} | BUSY member lease_end now
local live = busy(KEYS[2])
if live then return live end
local before = #KEYS - tonumber(ARGV[3])
for i = 1, before do
  if KEYS[i] ~= KEYS[3] then redis.call('DEL', KEYS[i]) end
end
for i = before + 1, #KEYS do
  local flat = cjson.decode(ARGV[4 + i - before])
  for k = 1, #flat, 500 do redis.call('HSET', KEYS[i], unpack(flat, k, math.min(k + 499, #flat))) end
end
redis.call('HSET', META, 'run_id', 'none: a copy was loaded')
event(KEYS[3], 'restore', ARGV[2])
for i = before + 1, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[4]) end
redis.call('PEXPIRE', KEYS[3], ARGV[4])
return { 'OK' }
