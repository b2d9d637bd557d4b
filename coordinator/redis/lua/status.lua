-- Returns founding, reset epoch and topics of the group, and how many members live. Writes nothing, but may cut the end of a recovery (rule: clock-ahead).
-- KEYS meta topics leases
-- Reply founding, reset epoch, topics as HGETALL, live members | ABSENT | LOST | SCHEMA
-- Uses leases, prelude
local bad = lost()
if bad then return bad end
recovering()
local m = redis.call('HMGET', META, 'founding', 'reset_epoch')
local alive = redis.call('ZCOUNT', KEYS[3], '(' .. ms(now_ms()), '+inf')
return { 'OK', 'founding', m[1], 'reset', m[2], 'topics', redis.call('HGETALL', KEYS[2]), 'alive', alive }
