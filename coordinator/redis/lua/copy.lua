-- Returns these hashes as of one moment, for a copy of the group.
-- Reply hashes: [field, value, ...] of each, in their order; without nonce and seq
-- Uses names
local hashes = {}
for i, key in ipairs(K.hashes) do hashes[i] = redis.call('HGETALL', key) end
return { 'OK', 'hashes', hashes }
