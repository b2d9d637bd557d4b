-- A member joins, or a new life of it: later calls of the old life are fenced (rule: one-life).
-- Slices that its earlier life had begun and not ended get a strike, however soon the next life joins.
-- KEYS meta leases member events batches leaving applications targets working strikes
-- ARGV[2] nonce at which this life joined before ("" if never),
--   ARGV[3] "name\n..." names that may have one live member: application and query (rule: one-member-per-application),
--   ARGV[4] "topic partition offset;..." targets of AvailableNow ("" if none), ARGV[5..] field value ... of the member's hash
-- Reply targets, raised to those of the others | FENCED | BUSY other lease_end now
--   | ABSENT | LOST | SCHEMA
local bad = lost()
if bad then return bad end
local nonce, now = redis.call('HGET', META, 'nonce'), now_ms()
if ARGV[2] == nonce and redis.call('HGET', KEYS[3], 'incarnation') ~= call.incarnation then return { 'FENCED' } end

for name in string.gmatch(ARGV[3], '[^\n]+') do
  local other = redis.call('HGET', KEYS[7], name)
  local other_end = other and other ~= call.member and end_of_lease(KEYS[2], other)
  if other_end and tonumber(other_end) >= now then return { 'BUSY', other, other_end, ms(now) } end
end

local function live(member)
  local its_end = end_of_lease(KEYS[2], member)
  return its_end and tonumber(its_end) >= now
end

local function raised_targets(targets)
  local highest, order = {}, {}
  local function add(text, known_only)
    for topic, partition, offset in string.gmatch(text, '(%S+) (%d+) (%d+);') do
      local tp = topic .. ' ' .. partition
      if not highest[tp] and not known_only then order[#order + 1] = tp; highest[tp] = offset end
      if highest[tp] and less(highest[tp], offset) then highest[tp] = offset end
    end
  end
  add(targets, false)
  local others = redis.call('HGETALL', KEYS[8])
  for i = 1, #others, 2 do
    if others[i] ~= call.member and live(others[i]) then add(others[i + 1], true) end
  end
  local text = {}
  for _, tp in ipairs(order) do text[#text + 1] = tp .. ' ' .. highest[tp] .. ';' end
  return table.concat(text)
end

local targets = ARGV[4] ~= '' and raised_targets(ARGV[4]) or ''
-- A member that joins again keeps its place behind earlier members.
local before = redis.call('HMGET', KEYS[3], 'incarnation', 'joined_at', 'authorized')
local joined_at = before[1] == call.incarnation and before[2] or ms(now)
if before[1] and before[1] ~= call.incarnation then strike(KEYS[9], KEYS[10], KEYS[4], call.member) end
redis.call('DEL', KEYS[3])
redis.call('HSET', KEYS[3], 'incarnation', call.incarnation, 'joined_at', joined_at, unpack(ARGV, 5))
-- Its next life commits the batch that it authorised. The batch is unknown if the member's hash was deleted by hand.
local lived = before[1] or redis.call('ZSCORE', KEYS[2], call.member)
local authorized = before[3] or (lived and 'unknown' or 'none')
redis.call('HSET', KEYS[3], 'authorized', authorized)
redis.call('SREM', KEYS[6], call.member)
redis.call('ZREM', KEYS[5], call.member)
redis.call('HDEL', KEYS[8], call.member)
if targets ~= '' then redis.call('HSET', KEYS[8], call.member, targets) end
local applications = redis.call('HGETALL', KEYS[7])
for i = 1, #applications, 2 do  -- an application ends with its member, or with this member's earlier life
  local member = applications[i + 1]
  if member == call.member or not redis.call('ZSCORE', KEYS[2], member) then redis.call('HDEL', KEYS[7], applications[i]) end
end
for name in string.gmatch(ARGV[3], '[^\n]+') do redis.call('HSET', KEYS[7], name, call.member) end
remember_times()
redis.call('HINCRBY', META, 'joins', 1)  -- an assignment is due: it may want more or other topics than before
local application = redis.call('HGET', KEYS[3], 'application')
event(KEYS[4], 'join', (application and 'application ' .. application .. ', ' or '') .. 'incarnation ' .. call.incarnation)
renew(KEYS[2])
return reply('targets', targets)
