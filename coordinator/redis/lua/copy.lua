-- Returns these hashes as of one moment, for a copy of the group.
-- KEYS any keys of the group that are hashes
-- Reply {OK, [field, value, ...], ...} in the order of KEYS
local hashes = { 'OK' }
for i, key in ipairs(KEYS) do hashes[i + 1] = redis.call('HGETALL', key) end
return hashes
