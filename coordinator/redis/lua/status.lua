-- Returns founding, reset epoch and topics of the group, and how many members live. Writes nothing, but may cut the end of a recovery (rule: clock-ahead).
-- Reply founding, reset epoch, topics as HGETALL, live members | ABSENT | LOST | SCHEMA
-- Uses leases, names, prelude
local bad = lost()
if bad then return bad end
recovering()
local m = redis.call('HMGET', META, 'founding', 'reset_epoch')
local alive = #redis.call('ZRANGE', K.leases, '(' .. ms(now_ms()), '+inf', 'BYSCORE')
return { 'OK', 'founding', m[1], 'reset', m[2], 'topics', redis.call('HGETALL', K.topics), 'alive', alive }
