-- Writes the slices that a member's tasks have begun and not ended, so that a hung record leaves evidence.
-- A.slices: "topic partition lo-hi from-until[ one];..." of these slices, "one": one record on trial; "" if the tasks have none
-- Reply OK | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses leases, names, prelude
local bad = lost() or fenced(K.member)
if bad then return bad end
renew(K.leases)
if A.slices == '' then
  redis.call('HDEL', K.working, call.member)
else
  redis.call('HSET', K.working, call.member, A.slices)
end
return reply()
