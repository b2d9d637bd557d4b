-- Records an assignment if its occasion still holds: any member may compute one (rule: first-assignment-wins).
-- KEYS meta leases member events batches leaving topics policy assignment standbys
-- ARGV[2] its occasion, ARGV[3] protocol, ARGV[4] the error of its assignor ("" if it did not fail),
--   ARGV[5..] member JSON-of-its-ranges ...
-- Reply generation, 0 if the occasion has passed | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses events, leases, names, prelude
local bad = lost() or fenced(KEYS[3]) or recovering()
if bad then return bad end
grant_grace(KEYS[2])
local now_due = occasion({ leases = KEYS[2], batches = KEYS[5], leaving = KEYS[6], topics = KEYS[7], policy = KEYS[8],
  standbys = KEYS[10] })
if now_due ~= ARGV[2] or now_due == redis.call('HGET', META, 'occasion') then
  renew(KEYS[2])
  return reply('generation', 0)
end
local generation = redis.call('HINCRBY', META, 'generation', 1)
redis.call('HSET', META, 'occasion', now_due, 'leader', call.member, 'protocol', ARGV[3], 'generation_at', ms(now_ms()))
local assigned_before = redis.call('HKEYS', KEYS[9])
table.sort(assigned_before)
for _, before in ipairs(assigned_before) do
  local its_end, hung = end_of_lease(KEYS[2], before), end_of_batch(KEYS[5], before)
  if its_end and tonumber(its_end) < now_ms() then
    event(KEYS[4], 'expire', 'its lease has ended: others may acquire its ranges', nil, before)
  elseif hung and tonumber(hung) < now_ms() then
    event(KEYS[4], 'expire', 'its batch takes longer than longest.batch.ms: others may acquire its ranges', nil, before)
  end
end
redis.call('DEL', KEYS[9])
for i = 5, #ARGV, 2 do redis.call('HSET', KEYS[9], ARGV[i], ARGV[i + 1]) end
local by = ARGV[4] == '' and ARGV[3] or 'grouped, because ' .. ARGV[3] .. ' failed,'
event(KEYS[4], 'plan', 'generation ' .. generation .. ' by ' .. by .. ' for ' .. (#ARGV - 4) / 2 .. ' members')
if ARGV[4] == '' then
  redis.call('HDEL', META, 'failure')
else
  redis.call('HSET', META, 'failure', ARGV[4])
  event(KEYS[4], 'assignor', ARGV[3] .. ' of ' .. call.member .. ' failed: ' .. ARGV[4] .. '; grouped assigns whole partitions'
    .. ' until members, their assignors, topics or policies change')
end
renew(KEYS[2])
return reply('generation', generation)
