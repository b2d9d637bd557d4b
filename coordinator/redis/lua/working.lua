-- Says what a member's tasks are at now, and before its batch is over, so that a hung record leaves evidence.
-- KEYS meta leases member working
-- ARGV[2] "topic partition lo-hi from-until;..." of slices that were begun and have not ended, after "alone; " if a struck
--   lane is tried in them; "" if none
-- Reply {OK, nonce, seq, lease end} | REJOIN | FENCED | ABSENT | LOST | SCHEMA
local bad = lost() or fenced(KEYS[3])
if bad then return bad end
local lease_end = ms(renew(KEYS[2]))
if ARGV[2] == '' then
  redis.call('HDEL', KEYS[4], call.member)
else
  redis.call('HSET', KEYS[4], call.member, ARGV[2])
end
return reply(lease_end)
