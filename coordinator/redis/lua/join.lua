-- A member joins, or joins again. The fence refuses later calls of its other incarnations (rule: one-life).
-- A pinned member claims its ranges. It is held while another member has a claim to a part of them
-- (rule: one-claim-per-hash), and while members of the other kind are there (rule: pinned-or-assigned).
-- If the incarnation is new, the script strikes slices that the earlier incarnation began and did not end. The time
-- between the two does not matter.
-- A.joined_nonce: nonce at which this incarnation joined before ("" if never): if there is one, it has asserted its positions,
-- A.alone_as: names that may have one live member: application and query (rule: one-member-per-application),
-- A.targets: "topic partition offset;..." targets of AvailableNow ("" if none),
-- A.pinned: JSON of its pinned ranges ("" if it is assigned ranges), A.filter: text of its record filter ("" if none),
-- A.ordering: key, partition or none, A.next_nonce: the nonce of a group that changes its ordering (rule: one-ordering),
-- A.alone: of an application that reads the group alone: its name, "" if it shares (rule: one-application),
-- A.returns: whether its checkpoint holds what it has read,
-- A.role: of a standby: standby or working, "" of any other member (rule: standby-takes-over),
-- A.joined_at: of this life's first join ("" if never), A.shown: field, value, ... of the member's hash
-- Reply joined_at, targets, raised to the targets of the other live members | FENCED | BUSY other lease_end now
--   | HELD other lease_end now | FILTER other lease_end now its_filter | ORDERING other lease_end now its_ordering
--   | ALONE other lease_end now its_name | MISSED if it reads alone, and another application has read since
--   | RECOVERING | ABSENT | LOST | SCHEMA
-- Uses damage, events, leases, names, pinned, prelude, progress, strikes
local bad = lost()
if bad then return bad end
local nonce, now = redis.call('HGET', META, 'nonce'), now_ms()
local before = redis.call('HMGET', K.member, 'incarnation', 'joined_at', 'authorized', 'seal', 'alone', 'returns')
local another = before[1] ~= call.incarnation
if A.joined_nonce == nonce and another then return { 'FENCED' } end
-- Lives are in the order of their first joins, at whatever nonce: an earlier one that wakes up is fenced.
local latest = before[2] and number(before[2]) and #before[2] < 16 and before[2] or '0'
if before[1] and another and A.joined_at ~= '' and not less(latest, A.joined_at) then return { 'FENCED' } end
-- New lives wait: the members of before assert their positions and join again first (rule: recovering-session).
if A.joined_nonce == '' and recovering() then return recovering() end

grant_grace(K.leases)  -- before it asks who is there
for _, name in ipairs(A.alone_as) do
  local other = redis.call('HGET', K.applications, name)
  local other_end = other and other ~= call.member and end_of_lease(K.leases, other)
  if other_end and tonumber(other_end) >= now then return { 'BUSY', other, other_end, ms(now) } end
end

local pins, was_pinned = A.pinned, group_is_pinned()
local held, replaced, claims = claim(pins, K.leases, K.batches, K.leaving, K.assignment)
if held then return recovering() or { 'HELD', held, end_of_lease(K.leases, held), ms(now) } end

local function live(member)
  local its_end = end_of_lease(K.leases, member)
  return its_end and tonumber(its_end) >= now
end

local function living_others()  -- the other members with a lease, by name: a caller that waits hears of the same one again
  local found = redis.call('ZRANGE', K.leases, 0, -1)
  table.sort(found)
  for i = #found, 1, -1 do
    if found[i] == call.member or not live(found[i]) then table.remove(found, i) end
  end
  return found
end

-- A member with another filter or ordering than the group waits for the end of all other members (rule: one-filter,
-- rule: one-ordering).
local its_filter, ordering = redis.call('HGET', META, 'filter') or '', redis.call('HGET', META, 'ordering') or 'key'
local refiltered, reordered = its_filter ~= A.filter, ordering ~= A.ordering
local other = (refiltered or reordered) and living_others()[1]
if other then
  local its_end = end_of_lease(K.leases, other)
  if refiltered then return { 'FILTER', other, its_end, ms(now), its_filter } end
  return { 'ORDERING', other, its_end, ms(now), ordering }
end

-- A life whose member works already goes on with its work: no standby has taken it over.
local role, alone = A.role, redis.call('HGET', META, 'alone') or ''
for _, member in ipairs(role ~= '' and working_members(K) or NOTHING) do
  if member == call.member then role = 'working' end
end

-- Beside a member that reads alone, only standbys join (rule: one-application). A member whose name is not the group's is no
-- hindrance: it slept, and gets nothing before it joins again. Nor is one with the former name of this member: it is the other
-- read of an earlier life of this query.
local function in_the_way()
  for _, member in ipairs(living_others()) do
    local its = redis.call('HGET', group_key('member:' .. member), 'alone') or ''
    local works = its == alone and redis.call('HGET', K.standbys, member) ~= 'standby'
    if works and its ~= A.alone and its ~= before[5] then
      return { 'ALONE', member, end_of_lease(K.leases, member), ms(now), its }
    end
  end
end

if role ~= 'standby' then
  local missed = A.joined_nonce == nonce or ((A.returns or A.joined_nonce ~= '') and alone ~= '')
  if missed and A.alone ~= '' and alone ~= A.alone then return { 'MISSED' } end
  local refusal = in_the_way()
  if refusal and A.role == '' then return refusal end
  if refusal then role = 'standby' end  -- another standby has taken over from it meanwhile
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
  local others = redis.call('HGETALL', K.targets)
  for i = 1, #others, 2 do
    if others[i] ~= call.member and live(others[i]) then add(others[i + 1], true) end
  end
  local text = {}
  for _, tp in ipairs(order) do text[#text + 1] = tp .. ' ' .. highest[tp] .. ';' end
  return table.concat(text)
end

local targets = A.targets ~= '' and raised_targets(A.targets) or ''
-- An incarnation that joins again keeps its place behind earlier members. A new one comes after all earlier ones.
local joined_at = A.joined_at ~= '' and A.joined_at or (another and ms(math.max(now, tonumber(latest) + 1)) or before[2])
if before[1] and another then strike(K.working, K.strikes, K.events, call.member, hangs(K.batches, call.member)) end
redis.call('DEL', K.member)
redis.call('HSET', K.member, 'incarnation', call.incarnation, 'joined_at', joined_at, 'session', call.session, unpack(A.shown))
-- A new incarnation commits the batch that the earlier one authorised, up to the ends in its seal. If an operator
-- deleted the member's hash by hand, the batch is unknown.
local lived = before[1] or redis.call('ZSCORE', K.leases, call.member)
local authorized = before[3] or (lived and 'unknown' or 'none')
redis.call('HSET', K.member, 'authorized', authorized)
if before[4] then redis.call('HSET', K.member, 'seal', before[4]) end
redis.call('SREM', K.leaving, call.member)
redis.call('ZREM', K.batches, call.member)
redis.call('HDEL', K.targets, call.member)
redis.call('HDEL', K.standbys, call.member)
if role ~= '' then redis.call('HSET', K.standbys, call.member, role) end
if targets ~= '' then redis.call('HSET', K.targets, call.member, targets) end
local applications = redis.call('HGETALL', K.applications)
for i = 1, #applications, 2 do  -- removes the earlier names of this member, and names of members without a lease
  local member = applications[i + 1]
  if member == call.member or not redis.call('ZSCORE', K.leases, member) then redis.call('HDEL', K.applications, applications[i]) end
end
for _, name in ipairs(A.alone_as) do redis.call('HSET', K.applications, name, call.member) end
if (pins ~= '') ~= was_pinned then
  redis.call('DEL', K.assignment)
  redis.call('HDEL', META, 'protocol', 'occasion', 'leader', 'failure')
end
if pins ~= '' then
  if #replaced > 0 then redis.call('HDEL', K.assignment, unpack(replaced)) end
  redis.call('HSET', K.assignment, call.member, pins)
  redis.call('HSET', K.member, 'pinned', pins)
  redis.call('HSET', META, 'protocol', PINNED, 'generation_at', ms(now_ms()))
  redis.call('HINCRBY', META, 'generation', 1)
end
if reordered then
  redis.call('HSET', META, 'ordering', A.ordering, 'nonce', A.next_nonce, 'epochs', '0')
  event(K.events, 'ordering', 'ordering is ' .. A.ordering .. ' from now on; every lane epoch is void')
end
remember_times(not recovering() and not living_others()[1])
if A.joined_nonce ~= '' then hear(call.member) end
if refiltered then redis.call('HSET', META, 'filter', A.filter) end
if role ~= 'standby' and alone ~= A.alone then redis.call('HSET', META, 'alone', A.alone) end
if A.alone ~= '' then redis.call('HSET', K.member, 'alone', A.alone) end
if A.returns or before[6] then redis.call('HSET', K.member, 'returns', 'true') end
redis.call('HINCRBY', META, 'joins', 1)  -- makes an assignment due: the member may subscribe to other topics than before
local application = redis.call('HGET', K.member, 'application')
event(K.events, 'join', (application and 'application ' .. application .. ', ' or '') .. 'incarnation ' .. call.incarnation)
local unread = unread_text(claims)
if unread ~= '' then event(K.events, 'unread', 'no pinned member reads ' .. unread) end
renew(K.leases)
return reply('joined_at', joined_at, 'targets', targets)
