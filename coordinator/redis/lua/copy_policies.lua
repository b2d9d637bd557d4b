-- Copies the policies of the Kafka cluster to the group, so that all scripts read one hash (rule: cluster-policies). A late
-- copy never replaces a newer one. If the topic of policies is gone, the last copy stays in force. If the caller may not
-- read it, the last copy stays too; without a copy they are unknown: the strict reading holds.
-- A.version: "<topic id> <log end>", "" if there is no such topic, "-" if the caller may not read it,
-- A.policies: name, true or false, ...
-- Reply OK | ABSENT | LOST | SCHEMA
-- Uses events, names, policies, prelude
local bad = lost()
if bad then return bad end
local version = redis.call('HGET', K.policy, CLUSTER .. 'version')
local id, log_end = string.match(A.version, '^(%S+) (%d+)$')
local known_id, known_end = string.match(version or '', '^(%S+) (%d+)$')
local late = id and id == known_id and less(log_end, known_end)
if late or (not id and known_id) or A.version == (version or '') then return reply() end

local before, flat = {}, redis.call('HGETALL', K.policy)
for i = 1, #flat, 2 do
  if string.sub(flat[i], 1, #CLUSTER) == CLUSTER then before[flat[i]] = flat[i + 1] end
end
local after = {}
if A.version ~= '' then after[CLUSTER .. 'version'] = A.version end
if A.version == '-' then after[CLUSTER .. 'accept.individual.commit'] = 'unknown' end
for i = 1, #A.policies, 2 do after[CLUSTER .. A.policies[i]] = A.policies[i + 1] end
for name in pairs(before) do
  if after[name] == nil then redis.call('HDEL', K.policy, name) end
end
local changed = {}
for name, value in pairs(after) do
  redis.call('HSET', K.policy, name, value)
  if name ~= CLUSTER .. 'version' and value ~= (before[name] or 'true') then changed[#changed + 1] = name .. ' is ' .. value end
end
for name, value in pairs(before) do
  if name ~= CLUSTER .. 'version' and after[name] == nil and value ~= 'true' then changed[#changed + 1] = name .. ' is at its default' end
end
table.sort(changed)
local why = A.version == '-' and ': a member may not read the topic coop-kafka-policies. Nothing is shared, and each partition is'
  .. ' read in order, until its Kafka user gets READ on the topic' or ''
for _, what in ipairs(changed) do event(K.events, 'policy', what .. why) end
return reply()
