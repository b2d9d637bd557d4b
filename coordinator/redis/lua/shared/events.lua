-- Writes events, above all changes of ownership (rule: ownership-events).
-- Uses names

-- Only changes of ownership have `ranges`. `member` is the subject of the event, by default the caller.
local function event(key, kind, why, ranges, member)
  local more = ranges and { 'ranges', ranges } or {}
  redis.call('XADD', key, 'MAXLEN', '~', 1000, '*', 'event', kind, 'member', member or call.member, 'why', why, unpack(more))
end
