-- A member joins, or joins again. The fence refuses later calls of its other incarnations (rule: one-life).
-- A pinned member claims its ranges. It is held while another member has a claim to a part of them
-- (rule: one-claim-per-hash), and while members of the other kind are there (rule: pinned-or-assigned).
-- If the incarnation is new, the script strikes slices that the earlier incarnation began and did not end. The time
-- between the two does not matter.
-- KEYS meta leases member events batches leaving applications targets working strikes assignment standbys
-- ARGV[2] nonce at which this incarnation joined before ("" if never): if there is one, it has asserted its positions,
--   ARGV[3] "name\n..." names that may have one live member: application and query (rule: one-member-per-application),
--   ARGV[4] "topic partition offset;..." targets of AvailableNow ("" if none),
--   ARGV[5] JSON of its pinned ranges ("" if it is assigned ranges), ARGV[6] text of its record filter ("" if none),
--   ARGV[7] ordering: key or none, ARGV[8] the nonce of a group that changes its ordering (rule: one-ordering),
--   ARGV[9] role of a standby: standby or working, "" of any other member (rule: standby-takes-over),
--   ARGV[10] joined_at of this life's first join ("" if never), ARGV[11..] field value ... of the member's hash
-- Reply joined_at, targets, raised to the targets of the other live members | FENCED | BUSY other lease_end now
--   | HELD other lease_end now | FILTER other lease_end now its_filter | ORDERING other lease_end now its_ordering
--   | RECOVERING | ABSENT | LOST | SCHEMA
-- Uses damage, events, leases, names, pinned, prelude, progress, strikes
local bad = lost()
if bad then return bad end
local nonce, now = redis.call('HGET', META, 'nonce'), now_ms()
local before = redis.call('HMGET', KEYS[3], 'incarnation', 'joined_at', 'authorized', 'seal')
local another = before[1] ~= call.incarnation
if ARGV[2] == nonce and another then return { 'FENCED' } end
-- Lives are in the order of their first joins, at whatever nonce: an earlier one that wakes up is fenced.
local latest = before[2] and number(before[2]) and #before[2] < 16 and before[2] or '0'
if before[1] and another and ARGV[10] ~= '' and not less(latest, ARGV[10]) then return { 'FENCED' } end
-- New lives wait: the members of before assert their positions and join again first (rule: recovering-session).
if ARGV[2] == '' and recovering() then return recovering() end

local gone = false  -- a member whose filter, ordering or application this one replaces
for name in string.gmatch(ARGV[3], '[^\n]+') do
  local other = redis.call('HGET', KEYS[7], name)
  local other_end = other and other ~= call.member and end_of_lease(KEYS[2], other)
  if other_end and tonumber(other_end) >= now then return { 'BUSY', other, other_end, ms(now) } end
  gone = gone or other_end
end

local pins, was_pinned = ARGV[5], group_is_pinned()
local held, replaced, claims = claim(pins, KEYS[2], KEYS[5], KEYS[6], KEYS[11])
if held then return recovering() or { 'HELD', held, end_of_lease(KEYS[2], held), ms(now) } end

local function live(member)
  local its_end = end_of_lease(KEYS[2], member)
  return its_end and tonumber(its_end) >= now
end

local function is_alone()
  for _, other in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    if other ~= call.member and live(other) then return false end
  end
  return true
end

-- A member with another filter or ordering than the group waits for the end of all other members (rule: one-filter,
-- rule: one-ordering).
local its_filter, ordering = redis.call('HGET', META, 'filter') or '', redis.call('HGET', META, 'ordering') or 'key'
local refiltered, reordered = its_filter ~= ARGV[6], ordering ~= ARGV[7]
for _, other in ipairs((refiltered or reordered) and redis.call('ZRANGE', KEYS[2], 0, -1) or NOTHING) do
  if other ~= call.member and live(other) then
    local its_end = end_of_lease(KEYS[2], other)
    if refiltered then return { 'FILTER', other, its_end, ms(now), its_filter } end
    return { 'ORDERING', other, its_end, ms(now), ordering }
  end
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

-- A life whose member works already goes on with its work: no standby has taken it over.
local role = ARGV[9]
for _, member in ipairs(role ~= '' and working_members(
  { leases = KEYS[2], batches = KEYS[5], leaving = KEYS[6], standbys = KEYS[12] }) or NOTHING) do
  if member == call.member then role = 'working' end
end

local targets = ARGV[4] ~= '' and raised_targets(ARGV[4]) or ''
-- An incarnation that joins again keeps its place behind earlier members. A new one comes after all earlier ones.
local joined_at = ARGV[10] ~= '' and ARGV[10] or (another and ms(math.max(now, tonumber(latest) + 1)) or before[2])
if before[1] and another then strike(KEYS[9], KEYS[10], KEYS[4], call.member, hangs(KEYS[5], call.member)) end
redis.call('DEL', KEYS[3])
redis.call('HSET', KEYS[3], 'incarnation', call.incarnation, 'joined_at', joined_at, unpack(ARGV, 11))
-- A new incarnation commits the batch that the earlier one authorised, up to the ends in its seal. If an operator
-- deleted the member's hash by hand, the batch is unknown.
local lived = before[1] or redis.call('ZSCORE', KEYS[2], call.member)
local authorized = before[3] or (lived and 'unknown' or 'none')
redis.call('HSET', KEYS[3], 'authorized', authorized)
if before[4] then redis.call('HSET', KEYS[3], 'seal', before[4]) end
redis.call('SREM', KEYS[6], call.member)
redis.call('ZREM', KEYS[5], call.member)
redis.call('HDEL', KEYS[8], call.member)
redis.call('HDEL', KEYS[12], call.member)
if role ~= '' then redis.call('HSET', KEYS[12], call.member, role) end
if targets ~= '' then redis.call('HSET', KEYS[8], call.member, targets) end
local applications = redis.call('HGETALL', KEYS[7])
for i = 1, #applications, 2 do  -- removes the earlier names of this member, and names of members without a lease
  local member = applications[i + 1]
  if member == call.member or not redis.call('ZSCORE', KEYS[2], member) then redis.call('HDEL', KEYS[7], applications[i]) end
end
for name in string.gmatch(ARGV[3], '[^\n]+') do redis.call('HSET', KEYS[7], name, call.member) end
if (pins ~= '') ~= was_pinned then
  redis.call('DEL', KEYS[11])
  redis.call('HDEL', META, 'protocol', 'occasion', 'leader', 'failure')
end
if pins ~= '' then
  if #replaced > 0 then redis.call('HDEL', KEYS[11], unpack(replaced)) end
  redis.call('HSET', KEYS[11], call.member, pins)
  redis.call('HSET', KEYS[3], 'pinned', pins)
  redis.call('HSET', META, 'protocol', PINNED, 'generation_at', ms(now_ms()))
  redis.call('HINCRBY', META, 'generation', 1)
end
if reordered then
  redis.call('HSET', META, 'ordering', ARGV[7], 'nonce', ARGV[8], 'epochs', '0')
  event(KEYS[4], 'ordering', 'ordering is ' .. ARGV[7] .. ' from now on; every lane epoch is void')
end
remember_times(not recovering() and is_alone())
if ARGV[2] ~= '' then hear(call.member) end
if refiltered then redis.call('HSET', META, 'filter', ARGV[6]) end
redis.call('HINCRBY', META, 'joins', 1)  -- makes an assignment due: the member may subscribe to other topics than before
local application = redis.call('HGET', KEYS[3], 'application')
event(KEYS[4], 'join', (application and 'application ' .. application .. ', ' or '') .. 'incarnation ' .. call.incarnation)
local unread = unread_text(claims)
if unread ~= '' then event(KEYS[4], 'unread', 'no pinned member reads ' .. unread) end
if gone or refiltered or reordered then grant_no_grace() end
renew(KEYS[2])
return reply('joined_at', joined_at, 'targets', targets)
