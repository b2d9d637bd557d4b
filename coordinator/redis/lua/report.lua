-- Writes a member's lane lines for people, and the percentage of its slots that slow lanes take for assignments.
-- KEYS meta leases member lanes
-- ARGV[2] a line for each lane, ARGV[3] percent of the member's slots that slow lanes take
-- Reply OK | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses leases, prelude
local bad = lost() or fenced(KEYS[3])
if bad then return bad end
renew(KEYS[2])
for _, member in ipairs(redis.call('HKEYS', KEYS[4])) do
  local its_end = redis.call('ZSCORE', KEYS[2], member)
  if not its_end or tonumber(its_end) < now_ms() then redis.call('HDEL', KEYS[4], member) end
end
redis.call('HSET', KEYS[3], 'slow_percent', ARGV[3])
redis.call('HSET', KEYS[4], call.member, ARGV[2])
return reply()
