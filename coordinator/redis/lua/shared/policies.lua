-- Policies that forbid a call of the Commit API (rule: sharing-policies), and policies after a loss of state.
-- Uses events
local CLUSTER = 'cluster:'  -- begins the copies of the Kafka cluster's policies

local function forbids(policy_key, name)  -- at the group's level or at the cluster's
  for _, value in ipairs({ redis.call('HGET', policy_key, name) or '', redis.call('HGET', policy_key, CLUSTER .. name) or '' }) do
    if value == 'false' or value == 'unknown' then return true end
  end
  return false
end

-- The number of the error for commits of offset ranges of a topic: 88 by the group's policy, 89 by the topic's; or nil.
local function forbidding_code(policy_key, topic)
  if forbids(policy_key, 'accept.individual.commit') then return '88' end
  if forbids(policy_key, 'accept.range.fetch:' .. topic) then return '89' end
  return nil
end

-- After a loss of state the strictest evidence holds: the policies that Redis kept, if `meta` or they survived, and those that
-- the caller proves. Without any, the policies
-- are unknown: the strict reading holds until an operator sets them (rule: policies-survive).
local function recover_policies(policy_key, events_key, proven, survived)
  if not proven and not survived and redis.call('EXISTS', policy_key) == 0 then
    redis.call('HSET', policy_key, 'accept.individual.commit', 'unknown')
    event(events_key, 'policy', 'accept.individual.commit is unknown after a loss of state: nothing is shared, and each'
      .. ' partition is read in order, until an operator sets it')
  end
  for i = 1, #(proven or {}), 2 do
    local name, value = proven[i], proven[i + 1]
    local known = redis.call('HGET', policy_key, name)
    if value == 'false' and known ~= 'false' then
      redis.call('HSET', policy_key, name, 'false')
      event(events_key, 'policy', name .. ' is false, as before the loss of state')
    elseif known == 'unknown' then
      redis.call('HDEL', policy_key, name)
    end
  end
end
