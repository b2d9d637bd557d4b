-- Hands out the lowest free offsets of partitions at a new lane epoch (rule: hand-out). An offset is free if it is not
-- done, and no member holds it whose time is not over (rule: slice-end). Drops slices that are done, and all slices of
-- the caller: their batch is committed, or no batch has them. No marker is stored: a later call finds the same offsets. A
-- call that was sent twice gets its slices again.
-- A.most: the most offsets of the call; 0: hand out none, A.size: the most of a partition before the next one has its
-- turn, A.ends: the end of each partition, which the caller reads up to
-- Reply now: Redis TIME in ms, reset, topics and policy as HGETALL, epoch of the slices or "", and of each partition: position, "" if it has none, the offset
--   after the last one that is done, and its slices "120-159 171-240" | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses arguments, damage, events, leases, names, prelude, progress, slices
local bad = lost() or fenced(K.member) or recovering() or other_policy(K.member)
if bad then return bad end
grant_grace(K.leases)
if not is_without_order() then return { 'REJOIN' } end  -- somebody has deleted the ordering: no commit would be accepted
local most, size = tonumber(A.most), tonumber(A.size)
local sent_again = call.number ~= '' and redis.call('HGET', K.member, 'called') == call.number
local topics, recorded = redis.call('HGETALL', K.topics), {}
for i = 1, #topics, 2 do
  local _, count = check_topic(topics[i + 1], topics[i], K.topics)
  recorded[topics[i]] = tonumber(count)
end

local times_over = {}  -- a cache, by member
local function is_over(member)
  if times_over[member] == nil then
    local its_end, hung, now = end_of_lease(K.leases, member), end_of_batch(K.batches, member), now_ms()
    local ended = not its_end or tonumber(its_end) < now
    times_over[member] = ended or (hung and tonumber(hung) < now) or false
  end
  return times_over[member]
end

local epoch = ''

-- Looks at one partition; nil without positions. `over` are the slices of members whose time is over.
local function partition_at(keys, its_end)
  local topic, partition = string.match(keys.segments, ':segments:(.+):(%d+)$')
  local segments = cut_segments(keys, NOTHING)
  if #segments == 0 then
    local placed = not recorded[topic] or tonumber(partition) < recorded[topic]
    return nil, placed and positions_gone(keys.segments) or nil
  end
  require_argument(is_position(its_end), 'end', its_end)
  local done, taken, dropped, over, given = done_everywhere(segments), {}, {}, {}, {}
  for _, s in ipairs(slices_at(keys.handed)) do
    local _, rest = compared({ s }, done)
    if sent_again and #rest > 0 and s[5] == call.member then
      given[#given + 1], taken[#taken + 1], epoch = { s[1], s[2] }, s, s[4]
    elseif #rest == 0 or not s[5] or s[5] == call.member then
      dropped[#dropped + 1] = s[3]
    else
      local kept = is_over(s[5]) and over or taken
      kept[#kept + 1] = s
    end
  end
  local position = done[1] and done[1][1] == '0' and done[1][2] or '0'
  local free, length = less(position, its_end) and { { position, its_end } } or {}, 0
  for _, others in ipairs({ done, taken }) do
    local _, rest = compared(free, others)
    free = rest
  end
  for _, r in ipairs(free) do length = length + math.max(1, tonumber(r[2]) - tonumber(r[1])) end
  return { key = keys.handed, name = topic .. '-' .. partition, position = position, free = free, length = length,
    dropped = dropped, over = over, given = given, reach = done[1] and done[#done][2] or '0' }
end

local function take(p, wanted)  -- the lowest free offsets of a partition, at most `wanted`; returns their number
  local got = 0
  while got < wanted and p.free[1] do
    local r = p.free[1]
    local till = shifted(r[1], wanted - got)
    if not less(till, r[2]) then
      till = r[2]
      table.remove(p.free, 1)
    end
    p.given[#p.given + 1] = { r[1], till }
    got = got + math.max(1, tonumber(till) - tonumber(r[1]))
    r[1] = till
  end
  p.length = p.free[1] and math.max(1, p.length - got) or 0
  return got
end

-- The partitions with free offsets. The one furthest behind and the one least behind alternate: so a quiet partition
-- does not wait for the backlog of the others.
local function in_turn(partitions)
  local waiting, turns = {}, {}
  for _, p in ipairs(partitions) do
    if p.length > 0 then waiting[#waiting + 1] = p end
  end
  table.sort(waiting, function(a, b) return a.length > b.length or (a.length == b.length and a.name < b.name) end)
  for i = 1, math.floor((#waiting + 1) / 2) do
    turns[#turns + 1] = waiting[i]
    if #waiting + 1 - i > i then turns[#turns + 1] = waiting[#waiting + 1 - i] end
  end
  return turns
end

local partitions, found = {}, {}
for i, keys in ipairs(K.partitions) do
  local p, loss = partition_at(keys, A.ends[i])
  if loss then return loss end
  found[i] = p or false
  if p then partitions[#partitions + 1] = p end
end
if epoch ~= '' then most = 0 end
local turns = in_turn(partitions)
while most > 0 and #turns > 0 do
  for _, p in ipairs(turns) do
    if most > 0 then most = most - take(p, math.min(size, most)) end
  end
  turns = in_turn(turns)
end

local again = {}  -- by member, its offsets that were handed out again

local function added(flat, offsets, value)
  for _, r in ipairs(offsets) do flat[#flat + 1], flat[#flat + 2] = text_of({ r }), value end
end

local function write(p)
  local flat = {}
  for _, s in ipairs(p.over) do  -- the rest of a slice stays with its member until that is handed out too
    local away, rest = compared({ s }, p.given)
    if #away > 0 then
      p.dropped[#p.dropped + 1] = s[3]
      added(flat, rest, s[4] .. ' ' .. s[5])
      again[s[5]] = again[s[5]] or {}
      table.insert(again[s[5]], p.name .. ' ' .. text_of(united(away)))
    end
  end
  if #p.given > 0 and epoch == '' then epoch = call.nonce .. '.' .. redis.call('HINCRBY', META, 'epochs', 1) end
  added(flat, p.given, epoch .. ' ' .. call.member)
  for i = 1, #p.dropped, 500 do redis.call('HDEL', p.key, unpack(p.dropped, i, math.min(i + 499, #p.dropped))) end
  fill(p.key, flat)
  expire_with_group(p.key)
end

for _, p in ipairs(partitions) do
  p.given = united(p.given)
  write(p)
end
local members = {}
for member in pairs(again) do members[#members + 1] = member end
table.sort(members)
for _, member in ipairs(members) do
  event(K.events, 'lost', 'handed out again to ' .. call.member .. ': no sign of life of its member',
    table.concat(again[member], ', '), member)
end
renew(K.leases)
local positions, reach, slices = {}, {}, {}
for i = 1, #found do
  positions[i], reach[i] = found[i] and found[i].position or '', found[i] and found[i].reach or ''
  slices[i] = found[i] and text_of(found[i].given) or ''
end
return reply('now', ms(now_ms()), 'reset', redis.call('HGET', META, 'reset_epoch'), 'topics', topics,
  'policy', redis.call('HGETALL', K.policy), 'epoch', epoch, 'positions', positions, 'reach', reach, 'slices', slices)
