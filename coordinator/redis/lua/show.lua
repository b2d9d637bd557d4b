-- Writes log ends and leader epochs; nothing if the group is gone (rule: group-expiry).
-- KEYS meta, then hashes of topics
-- ARGV[2..] JSON [field, value, ...] of each
-- Reply {OK} alone | SCHEMA
if redis.call('HGET', META, 'schema') ~= SCHEMA then return other_schema() or { 'OK' } end
check_kinds()
for i = 2, #KEYS do fill(KEYS[i], cjson.decode(ARGV[i])) end
expire_what_is_new()
return { 'OK' }
