-- Sets policies of the group and of its topics, also before the group exists (rule: sharing-policies). Each member
-- follows at its next look: policies are part of the occasion of an assignment.
-- KEYS meta policy events
-- ARGV[2] ms until policies without a group expire, ARGV[3..] name value ...: true, false, or "" for the default
-- Reply policies as HGETALL, without nonce and seq | SCHEMA
-- Uses damage, events, names, prelude
local bad = other_schema()
if bad then return bad end
check_kinds()
for i = 3, #ARGV, 2 do
  local before = redis.call('HGET', KEYS[2], ARGV[i]) or ''
  if ARGV[i + 1] == '' then
    redis.call('HDEL', KEYS[2], ARGV[i])
  else
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  end
  if before ~= ARGV[i + 1] then
    event(KEYS[3], 'policy', ARGV[i] .. ' is ' .. (ARGV[i + 1] == '' and 'at its default' or ARGV[i + 1]))
  end
end
if redis.call('EXISTS', META) == 1 then
  expire_what_is_new()
else
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
  redis.call('PEXPIRE', KEYS[3], ARGV[2])
end
return { 'OK', 'policies', redis.call('HGETALL', KEYS[2]) }
