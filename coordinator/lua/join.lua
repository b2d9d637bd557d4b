-- A member joins, or a new life of it does: later calls of the old life are fenced (spec 4.2).
-- KEYS meta leases member events
-- ARGV[2] nonce at which this life joined before ("" if never), ARGV[3..] field value ... of the member's hash
-- Reply {OK, nonce, seq, lease end, now} | FENCED | BUSY other lease_end now | ABSENT | LOST | SCHEMA
local bad = lost()
if bad then return bad end
local nonce, now = redis.call('HGET', META, 'nonce'), now_ms()
if ARGV[2] == nonce and redis.call('HGET', KEYS[3], 'incarnation') ~= call.incarnation then return { 'FENCED' } end
for _, other in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], ms(now), '+inf')) do
  if other ~= call.member then return { 'BUSY', other, redis.call('ZSCORE', KEYS[2], other), ms(now) } end
end
redis.call('DEL', KEYS[3])
redis.call('HSET', KEYS[3], 'incarnation', call.incarnation, 'joined_at', ms(now), unpack(ARGV, 3))
event(KEYS[4], 'join', 'incarnation ' .. call.incarnation)
return reply(ms(renew(KEYS[2])), ms(now))
