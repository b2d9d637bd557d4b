-- Copies the policies of the Kafka cluster to the group, so that all scripts read one hash (rule: cluster-policies). A late
-- copy never replaces a newer one. If the topic of policies is gone, the last copy stays in force. If the caller may not
-- read it, the last copy stays too; without a copy they are unknown: the strict reading holds.
-- KEYS meta policy events
-- ARGV[2] version: "<topic id> <log end>", "" if there is no such topic, "-" if the caller may not read it,
--   ARGV[3..] name value ...: true or false
-- Reply OK | ABSENT | LOST | SCHEMA
-- Uses events, policies, prelude
local bad = lost()
if bad then return bad end
local version = redis.call('HGET', KEYS[2], CLUSTER .. 'version')
local id, log_end = string.match(ARGV[2], '^(%S+) (%d+)$')
local known_id, known_end = string.match(version or '', '^(%S+) (%d+)$')
local late = id and id == known_id and less(log_end, known_end)
if late or (not id and known_id) or ARGV[2] == (version or '') then return reply() end

local before, flat = {}, redis.call('HGETALL', KEYS[2])
for i = 1, #flat, 2 do
  if string.sub(flat[i], 1, #CLUSTER) == CLUSTER then before[flat[i]] = flat[i + 1] end
end
local after = {}
if ARGV[2] ~= '' then after[CLUSTER .. 'version'] = ARGV[2] end
if ARGV[2] == '-' then after[CLUSTER .. 'accept.individual.commit'] = 'unknown' end
for i = 3, #ARGV, 2 do after[CLUSTER .. ARGV[i]] = ARGV[i + 1] end
for name in pairs(before) do
  if after[name] == nil then redis.call('HDEL', KEYS[2], name) end
end
local changed = {}
for name, value in pairs(after) do
  redis.call('HSET', KEYS[2], name, value)
  if name ~= CLUSTER .. 'version' and value ~= (before[name] or 'true') then changed[#changed + 1] = name .. ' is ' .. value end
end
for name, value in pairs(before) do
  if name ~= CLUSTER .. 'version' and after[name] == nil and value ~= 'true' then changed[#changed + 1] = name .. ' is at its default' end
end
table.sort(changed)
local why = ARGV[2] == '-' and ': a member may not read the topic coop-kafka-policies. Nothing is shared, and each partition is'
  .. ' read in order, until its Kafka user gets READ on the topic' or ''
for _, what in ipairs(changed) do event(KEYS[3], 'policy', what .. why) end
return reply()
