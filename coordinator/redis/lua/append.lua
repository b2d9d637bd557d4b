-- Adds an entry to a stream of the group. Writes nothing if the group does not exist: the stream would outlive it.
-- KEYS meta stream
-- ARGV[2] approximate number of entries that the stream keeps, ARGV[3..] field value ...
-- Reply {OK} alone | SCHEMA
-- Uses damage, names, prelude
if redis.call('HGET', META, 'schema') ~= SCHEMA then return other_schema() or { 'OK' } end
check_kinds()
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', unpack(ARGV, 3))
expire_what_is_new()
return { 'OK' }
