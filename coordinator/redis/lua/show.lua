-- Writes log ends and leader epochs. Writes nothing if the group does not exist (rule: group-expiry).
-- KEYS meta, then hashes of topics
-- ARGV[2..] JSON [field, value, ...] of each
-- Reply {OK} alone | SCHEMA
-- Uses damage, prelude
if redis.call('HGET', META, 'schema') ~= SCHEMA then return other_schema() or { 'OK' } end
check_kinds()
for i = 2, #KEYS do fill(KEYS[i], cjson.decode(ARGV[i])) end
expire_what_is_new()
return { 'OK' }
