-- Returns reset epoch and topics of the group. Writes nothing, but may cut the end of a recovery (rule: clock-ahead).
-- KEYS meta topics
-- Reply reset epoch, topics as HGETALL | ABSENT | LOST | SCHEMA
-- Uses leases, prelude
local bad = lost()
if bad then return bad end
recovering()
return { 'OK', 'reset', redis.call('HGET', META, 'reset_epoch'), 'topics', redis.call('HGETALL', KEYS[2]) }
