-- Put after the prelude: writes events, above all changes of ownership (rule: ownership-events).
-- `ranges`: of changes of ownership only. `member`: whom the event is about, if not the caller.
local function event(key, kind, why, ranges, member)
  local more = ranges and { 'ranges', ranges } or {}
  redis.call('XADD', key, 'MAXLEN', '~', 1000, '*', 'event', kind, 'member', member or call.member, 'why', why, unpack(more))
end
