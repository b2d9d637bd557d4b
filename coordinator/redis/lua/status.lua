-- Returns identity and topics of the group. Writes nothing, but may cut the end of a recovery (rule: clock-ahead).
-- KEYS meta topics
-- Reply reset epoch, topics as HGETALL | ABSENT | LOST | SCHEMA
-- Uses leases, prelude
local bad = lost()
if bad then return bad end
local m = redis.call('HMGET', META, 'nonce', 'commit_seq', 'reset_epoch')
recovering()
return reply_as_of(m[1], m[2], 'reset', m[3], 'topics', redis.call('HGETALL', KEYS[2]))
