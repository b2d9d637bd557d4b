-- Sets policies of the group and of its topics, also before the group exists (rule: sharing-policies). Each member
-- follows at its next look: policies are part of the occasion of an assignment.
-- A.kept_ms: ms until policies without a group expire, A.policies: name, true, false, or "" for the default, ...
-- Reply policies as HGETALL, without nonce and seq | SCHEMA
-- Uses damage, events, names, prelude
local bad = other_schema()
if bad then return bad end
check_kinds()
for i = 1, #A.policies, 2 do
  local name, value = A.policies[i], A.policies[i + 1]
  local before = redis.call('HGET', K.policy, name) or ''
  if value == '' then
    redis.call('HDEL', K.policy, name)
  else
    redis.call('HSET', K.policy, name, value)
  end
  if before ~= value then
    event(K.events, 'policy', name .. ' is ' .. (value == '' and 'at its default' or value))
  end
end
if redis.call('EXISTS', META) == 1 then
  expire_what_is_new()
else
  redis.call('PEXPIRE', K.policy, A.kept_ms)
  redis.call('PEXPIRE', K.events, A.kept_ms)
end
return { 'OK', 'policies', redis.call('HGETALL', K.policy) }
