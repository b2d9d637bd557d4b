-- Standbys: members that own nothing while enough others work (rule: standby-takes-over; rule: drain-hands-over).
-- In Redis: member -> "standby" or "working". Other members have no entry.
-- Uses events, leases, names, prelude

-- Members that no longer work, and that wanted to be standbys, are standbys again if they come back.
local function change_places(keys)
  local works, flat = {}, redis.call('HGETALL', keys.standbys)
  for _, member in ipairs(working_members(keys)) do works[member] = true end
  for i = 1, #flat, 2 do
    if not works[flat[i]] then redis.call('HSET', keys.standbys, flat[i], 'standby') end
  end
end

-- While fewer members work than the assignment has, or none works, a standby becomes a working member. The caller is the
-- first choice, since it lives. After it, the standby with the latest lease end is the likeliest to live. Nobody takes over
-- beside a member that reads alone, nor does such a member beside others, nor one that has read before another application
-- did (rule: one-application). Returns whether the caller is one of these, and a member is missing.
local function take_over(keys, assignment)
  if redis.call('EXISTS', keys.standbys) == 0 then return end
  local wanted, working = math.max(1, #redis.call('HKEYS', assignment)), working_members(keys)
  if #working >= wanted then return end
  local missing, taken, missed = wanted - #working, false, false
  local choice, by_lease = { call.member }, redis.call('ZRANGE', keys.leases, 0, -1)
  for i = #by_lease, 1, -1 do choice[#choice + 1] = by_lease[i] end
  for _, member in ipairs(choice) do
    local waits = redis.call('HGET', keys.standbys, member) == 'standby' and not takeable(keys.leases, keys.batches, member)
    local its = redis.call('HMGET', group_key('member:' .. member), 'alone', 'returns')
    local alone, latest = its[1] or '', redis.call('HGET', META, 'alone') or ''
    if (#working > 0 or taken) and alone .. latest ~= '' then waits = false end
    if waits and alone ~= '' and latest ~= '' and latest ~= alone and its[2] then
      waits, missed = false, missed or member == call.member
    end
    if missing > 0 and waits and redis.call('SISMEMBER', keys.leaving, member) == 0 then
      redis.call('HSET', keys.standbys, member, 'working')
      redis.call('HSET', META, 'alone', alone)
      event(EVENTS, 'takeover', 'this standby works from now on: ' .. #working .. ' of ' .. wanted .. ' members worked', nil, member)
      expire_with_group(EVENTS)
      missing, taken = missing - 1, true
    end
  end
  if taken then change_places(keys) end
  return missed and not taken
end
