-- Returns identity and topics of the group. Writes nothing, but may cut the end of a recovery (rule: clock-ahead).
-- KEYS meta topics
-- Reply {OK, nonce, seq, reset_epoch, recovering_until or "", topics as HGETALL} | ABSENT | LOST | SCHEMA
local bad = lost()
if bad then return bad end
local m = redis.call('HMGET', META, 'nonce', 'commit_seq', 'reset_epoch')
local waiting = recovering()
return { 'OK', m[1], m[2], m[3], waiting and waiting[2] or '', redis.call('HGETALL', KEYS[2]) }
