-- Adds an entry to a stream of the group. Writes nothing if the group does not exist: the stream would outlive it.
-- A.most: approximate number of entries that the stream keeps, A.fields: field, value, ... of the entry
-- Reply {OK} alone | SCHEMA
-- Uses damage, names, prelude
if redis.call('HGET', META, 'schema') ~= SCHEMA then return other_schema() or { 'OK' } end
check_kinds()
redis.call('XADD', K.entries, 'MAXLEN', '~', A.most, '*', unpack(A.fields))
expire_what_is_new()
return { 'OK' }
