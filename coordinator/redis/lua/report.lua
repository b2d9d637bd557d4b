-- Writes a member's lane lines for people, the percentage of its slots that slow lanes take for assignments, and the slot
-- time that its records need for autoscalers.
-- A.lines: a line for each lane, A.slow_percent: percent of the member's slots that slow lanes take
-- A.backlog_ms, A.load_percent: slot time of unread records, and of arriving ones in percent of one slot
-- Reply OK | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses leases, names, prelude
local bad = lost() or fenced(K.member)
if bad then return bad end
renew(K.leases)
for _, member in ipairs(redis.call('HKEYS', K.lanes)) do
  local its_end = redis.call('ZSCORE', K.leases, member)
  if not its_end or tonumber(its_end) < now_ms() then redis.call('HDEL', K.lanes, member) end
end
redis.call('HSET', K.member, 'slow_percent', A.slow_percent)
redis.call('HSET', K.member, 'backlog_ms', A.backlog_ms)
redis.call('HSET', K.member, 'load_percent', A.load_percent)
redis.call('HSET', K.lanes, call.member, A.lines)
return reply()
