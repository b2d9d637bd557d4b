-- Writes the slices that a member's tasks have begun and not ended, so that a hung record leaves evidence.
-- KEYS meta leases member working
-- ARGV[2] "topic partition lo-hi from-until[ one];..." of these slices, "one": one record on trial; "" if the tasks have none
-- Reply OK | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses leases, prelude
local bad = lost() or fenced(KEYS[3])
if bad then return bad end
renew(KEYS[2])
if ARGV[2] == '' then
  redis.call('HDEL', KEYS[4], call.member)
else
  redis.call('HSET', KEYS[4], call.member, ARGV[2])
end
return reply()
