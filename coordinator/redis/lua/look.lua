-- Returns the assigned ranges of a member, and whether it should compute a new assignment. Renews the lease.
-- One member at a time computes it, and only that member receives the list of members. So traffic is linear in members.
-- A pinned group computes none. If no new assignment comes in a third of a session, another member has the turn (rule: first-assignment-wins).
-- Standbys take over for lost members before the occasion is computed (rule: standby-takes-over).
-- Reply now: Redis TIME in ms, generation, its protocol or "" if it is out of date, mine: JSON of the member's ranges or "",
--   occasion of the assignment that the member should compute or "", members of that assignment,
--   AvailableNow's targets of the working members if this one has any, growths and policy as HGETALL,
--   role: standby or working, "" of a member that is never a standby
--   | MISSED of a standby that has read before another application read alone
--   | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses leases, names, pinned, prelude, standbys
local bad = lost() or fenced(K.member) or recovering() or other_policy(K.member)
if bad then return bad end
-- Another member has claimed the ranges of this one (rule: one-claim-per-hash), or members of the other kind joined
-- after the end of its lease (rule: pinned-or-assigned).
local pinned, mine = group_is_pinned(), redis.call('HGET', K.assignment, call.member) or ''
local without_claim = pinned and mine == ''
if without_claim or (not pinned and redis.call('HEXISTS', K.member, 'pinned') == 1) then return { 'REJOIN' } end
renew(K.leases)
if not pinned and take_over(K, K.assignment) then return { 'MISSED' } end
local now_due, members = occasion(K)
local made_for = redis.call('HGET', META, 'occasion')

local function turn()
  local m = redis.call('HMGET', META, 'computing', 'computing_member', 'computing_until')
  local left = tonumber(m[3] or 0) - now_ms()
  if m[1] == now_due and m[2] ~= call.member and left > 0 and left <= longest('session') then return false end
  redis.call('HSET', META, 'computing', now_due, 'computing_member', call.member,
    'computing_until', ms(now_ms() + math.floor(tonumber(call.session) / 3)))
  return true
end

local function counted()  -- a member that leaves or hangs does not compute assignments for the others
  for _, member in ipairs(members) do
    if member == call.member then return true end
  end
end

local due = not pinned and now_due ~= made_for and counted() and turn()
local targets = {}
if redis.call('HEXISTS', K.targets, call.member) == 1 then
  for _, other in ipairs(members) do targets[#targets + 1] = redis.call('HGET', K.targets, other) or '' end
end
local role = redis.call('HGET', K.standbys, call.member) or ''
if role == 'standby' then mine = '' end  -- the assignment may be older than its role
local m = redis.call('HMGET', META, 'generation', 'protocol')
return reply('now', ms(now_ms()), 'generation', m[1] or '0', 'protocol', now_due == made_for and m[2] or '', 'mine', mine,
  'occasion', due and now_due or '', 'members', due and members or {}, 'targets', table.concat(targets),
  'growths', redis.call('HGETALL', K.growth), 'policy', redis.call('HGETALL', K.policy), 'role', role)
