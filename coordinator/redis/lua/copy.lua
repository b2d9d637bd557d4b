-- Returns these hashes as of one moment, for a copy of the group.
-- KEYS any keys of the group that are hashes
-- Reply hashes: [field, value, ...] of each, in the order of KEYS; without nonce and seq
-- Uses no shared file
local hashes = {}
for i, key in ipairs(KEYS) do hashes[i] = redis.call('HGETALL', key) end
return { 'OK', 'hashes', hashes }
