-- Writes log ends, the time of the look in field `at`, and leader epochs. Writes nothing if the group does not exist (rule: group-expiry).
-- Keeps a newer leader epoch, and a larger end of the same one (rule: leader-epoch-facts). An older state than the caller
-- knows gets none: its positions may be from before a cut, which a newer leader epoch would hide (rule: loss-of-state).
-- Nor does a state that was recovered since the caller joined.
-- A.texts: [field, value, ...] of each hash of topics, A.at_ms: when the caller looked, "0" for now
-- Reply {OK} alone | ABSENT | LOST | REPLACED | REJOIN | SCHEMA
-- Uses leader_epochs, names, prelude
local bad = lost()
if bad then return bad end
if call.nonce ~= '' and call.nonce ~= redis.call('HGET', META, 'nonce') then return { 'REJOIN' } end
local at = A.at_ms == '0' and ms(now_ms()) or A.at_ms  -- the script may run long after the look
for i, key in ipairs(K.hashes) do
  local kept, flat = {}, A.texts[i]
  for j = 1, #flat, 2 do
    if says_more(redis.call('HGET', key, flat[j]), flat[j + 1]) then
      kept[#kept + 1], kept[#kept + 2] = flat[j], flat[j + 1]
    end
  end
  fill(key, kept)
  if string.find(key, '}:end:') then redis.call('HSET', key, 'at', at) end
end
expire_what_is_new()
return { 'OK' }
