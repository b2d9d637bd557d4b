-- Leases, hung batches and recoveries. Redis TIME decides them all. Its clock may have been ahead of time at a write.
-- So a stored time counts for at most the longest session or batch of the group's members, from now on (rule: clock-ahead).
-- The script cuts a lease and does not end it: its member may be alive, and its own clock ends the lease no later.
-- Uses events, names, prelude
local EVENTS, LEAVING = group_key('events'), group_key('leaving')
local EVENT_ABOVE = 1000  -- ms: small corrections of a clock are frequent and write no event

local longest_known = {}
local UNKNOWN = 2 ^ 52  -- ms: before the first member joins, the script cuts no time
local function longest(name)  -- ms: the longest session, batch or retention of the caller and the group's members
  local known = redis.call('HGET', META, name .. '_ms')
  longest_known[name] = longest_known[name] or (known and math.max(tonumber(call[name]), tonumber(known)) or UNKNOWN)
  return longest_known[name]
end

local function cut_to(most, at, what, write)  -- the earlier of `at` and `most`; `write` stores `most` if it is earlier
  if not at or tonumber(at) <= most then return at or nil end
  if tonumber(at) - most > EVENT_ABOVE then
    event(EVENTS, 'clock', what .. ' was cut: the clock of Redis was ahead')
    expire_with_group(EVENTS)
  end
  write(ms(most))
  return ms(most)
end

local function recovering()
  local until_ms = redis.call('HGET', META, 'recovering_until')
  if not until_ms or now_ms() >= tonumber(until_ms) then return nil end
  until_ms = cut_to(now_ms() + longest('session'), until_ms, 'the recovery', function(at)
    redis.call('HSET', META, 'recovering_until', at)
  end)
  return { 'RECOVERING', until_ms, redis.call('HGET', META, 'nonce') }
end

-- Of times that concern the whole group, the largest of its members counts (rule: settings-that-differ). Each renewal may
-- raise them. They go down when a member joins `alone`: a member that slept raises them again. A recovery lasts for the
-- longest session, also if a member that has it comes meanwhile.
local TIMES = { 'session_ms', 'longest_ms', 'retention_ms', 'grace_ms' }
local function remember_times(alone)
  local times = redis.call('HMGET', META, unpack(TIMES))
  local more = tonumber(call.session) - tonumber(times[1] or call.session)
  local recovers = more > 0 and recovering()
  if recovers then redis.call('HSET', META, 'recovering_until', ms(tonumber(recovers[2]) + more)) end
  for i, known in ipairs(times) do
    local its = tonumber(call[string.match(TIMES[i], '%a+')])
    if alone or not known or tonumber(known) < its then redis.call('HSET', META, TIMES[i], ms(its)) end
  end
end

-- A member of before has asserted its positions and joins again. When all that Redis knew have done so, the recovery is
-- over (rule: recovering-session).
local function hear(member)
  local rest, known = {}, redis.call('HGET', META, 'unheard')
  for other in string.gmatch(known or '', '%S+') do
    if other ~= member then rest[#rest + 1] = other end
  end
  if #rest > 0 then
    redis.call('HSET', META, 'unheard', table.concat(rest, ' '))
  elseif known then
    redis.call('HDEL', META, 'unheard', 'recovering_until')
  end
end

local function longest_session()  -- of the caller if no other is known
  return math.max(tonumber(call.session), tonumber(redis.call('HGET', META, 'session_ms') or 0) or 0)
end

-- The members that lived until the last lease ended: two that live have lease ends within one session of each other.
local function latest_members(leases, last)
  local since = tonumber(last) - longest_session()
  return redis.call('ZRANGE', leases, '(' .. ms(since), '+inf', 'BYSCORE')
end

-- A member calls at least every third of its session. If no member has called for longer, Redis was away, or all hosts
-- stood still, and the caller is only the first that comes back. Then each member that had more than half of a session left
-- at the last call gets half a session (rule: outage-grace). It gets that once, as it has no more than a half left now.
-- `renew` does so for each verb; verbs that ask for takeable ranges do so before.
--   last call of any member |<---------- silence ---------->| this call
--                           |--- half ---|   lease ends ^   |--- half --->| and now ends here
local looked_for_an_outage
local function grant_grace(leases)
  if looked_for_an_outage then return end
  looked_for_an_outage = true
  local now, last = now_ms(), tonumber(redis.call('HGET', META, 'heard_at'))
  redis.call('HSET', META, 'heard_at', ms(now))
  local most = math.floor(longest_session() / 2)
  for _, member in ipairs(last and redis.call('ZRANGE', leases, '(' .. ms(last), ms(now + most), 'BYSCORE') or {}) do
    local known = redis.call('HGET', group_key('member:' .. member), 'session')
    local its = tonumber(known) or tonumber(call.session)
    local half, its_end = math.floor(its / 2), tonumber(redis.call('ZSCORE', leases, member))
    local in_silence = now - last > its / 3 and its_end > last + half and its_end < now + half
    if in_silence and redis.call('SISMEMBER', LEAVING, member) == 0 then redis.call('ZADD', leases, ms(now + half), member) end
  end
end

local function end_of_lease(leases, member)  -- nil without a lease
  return cut_to(now_ms() + longest('session'), redis.call('ZSCORE', leases, member), 'the lease of ' .. member, function(at)
    redis.call('ZADD', leases, at, member)
  end)
end

local function end_of_batch(batches, member)  -- the time from which the batch counts as hung; nil between batches
  return cut_to(now_ms() + longest('longest'), redis.call('ZSCORE', batches, member), 'the batch of ' .. member, function(at)
    redis.call('ZADD', batches, at, member)
  end)
end

-- Refuses an operator's change while a member's lease runs.
local function busy(leases)
  for _, member in ipairs(redis.call('ZRANGE', leases, 0, -1)) do
    local its_end = end_of_lease(leases, member)
    if tonumber(its_end) >= now_ms() then return { 'BUSY', member, its_end, ms(now_ms()) } end
  end
  return nil
end

-- Refuses an operator's call if the group may have other keys by now than the caller listed (rule: whole-group). A call
-- that was sent twice finds no group, or the copy that it has loaded.
local function worked_since(seen)
  local m = redis.call('HMGET', META, 'nonce', 'commit_seq', 'run_id')
  if not m[1] or m[3] == COPIED or m[1] .. ' ' .. (m[2] or '') == seen then return nil end
  return { 'SUPERSEDED' }
end

local function hangs(batches, member)
  local at = end_of_batch(batches, member)
  return at and tonumber(at) < now_ms()
end

-- Whether others may acquire the member's ranges: its lease has ended, or its batch hangs (rule: lease-end).
local function takeable(leases, batches, member)
  local its_end = end_of_lease(leases, member)
  return not its_end or tonumber(its_end) < now_ms() or hangs(batches, member)
end

-- The members whose ranges are not takeable, ascending. Some of them may be leaving.
local function present_members(leases, batches)
  local members = {}
  for _, member in ipairs(redis.call('ZRANGE', leases, 0, -1)) do
    if not takeable(leases, batches, member) then members[#members + 1] = member end
  end
  table.sort(members)
  return members
end

-- The working members, ascending: members whose ranges are not takeable, that do not leave, and that are no standbys.
local function working_members(keys)
  local members = {}
  for _, member in ipairs(present_members(keys.leases, keys.batches)) do
    local waits = redis.call('HGET', keys.standbys, member) == 'standby'
    if redis.call('SISMEMBER', keys.leaving, member) == 0 and not waits then members[#members + 1] = member end
  end
  return members
end

-- The occasion of an assignment: working members as of their last join, topics with their partitions, policies.
local function occasion(keys)
  local function sorted_fields(key)
    local words, flat = {}, redis.call('HGETALL', key)
    for i = 1, #flat, 2 do words[#words + 1] = flat[i] .. ' ' .. flat[i + 1] end
    table.sort(words)
    return table.concat(words, ';')
  end
  local members = working_members(keys)
  local lives = redis.call('HMGET', META, 'nonce', 'joins')
  local text = { lives[1], lives[2] or '0', table.concat(members, ' '), sorted_fields(keys.topics),
    sorted_fields(keys.policy) }
  return redis.sha1hex(table.concat(text, ';')), members
end

local function renew(leases)  -- renews the caller's lease; returns its end
  remember_times(false)
  grant_grace(leases)
  local its_end = now_ms() + tonumber(call.session)
  redis.call('ZADD', leases, ms(its_end), call.member)
  return its_end
end
