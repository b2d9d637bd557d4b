-- Moves positions of lanes that the sink completed, if the member still owns them at their lane epochs
-- (rule: fence-by-lane-epoch). Refuses the other lanes; the owned lanes move all the same (rule: verdict-per-hash).
-- A repeated commit changes nothing (rule: cumulative-commit).
-- A.reset: reset epoch of the offset, A.digest: of the batch ("": do not check that the member authorised it),
-- A.ids: topic -> id, A.facts: "lo-hi epoch position[,first-last...];..." of each partition: all offsets left of the
--   position are done, and the offsets first-last above it. In a group without order the position is 0
-- Reply refused: "lo-hi epoch position[,first-last...];..." of each partition, a line each
--   exactly: 1 if each position is now that of its fact, and the segments have no individual commit, else ""
--   unread: 1 if positions would move but the member never authorised this batch (rule: unread-batch), else ""
--   | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses arguments, damage, leases, names, prelude, progress, slices
local bad = lost() or before_reset(A.reset) or fenced(K.member) or recovering()
if bad then return bad end
local refusals, moved, current = {}, {}, redis.call('HGET', META, 'reset_epoch') == A.reset
local ids, exactly, moves = {}, '1', false

local function owned_facts(lanes, keys, valid)  -- the facts of owned lanes, and the text of the others
  local facts, refused = {}, {}
  for _, piece in ipairs(overlay(lanes, ranges_of(keys, 'owners', OWNER))) do
    local epoch, member = owner(piece.right and piece.right.value)
    if valid and member == call.member and epoch == piece.left.a then
      local position, offsets = fact_of(piece.left.b)
      facts[#facts + 1] = { lo = piece.lo, hi = piece.hi, position = position, offsets = offsets }
    else
      refused[#refused + 1] = piece.lo .. '-' .. piece.hi .. ' ' .. piece.left.a .. ' ' .. piece.left.b .. ';'
    end
  end
  return facts, refused
end

-- The same in a group without order. Offsets that are done already are not refused: their slice is gone after the first
-- of two equal commits.
local function slice_facts(lanes, keys, valid)
  local facts, refused, slices = {}, {}, slices_at(handed_key(keys.owners))
  local done = done_everywhere(cut_segments(keys, NOTHING))
  for _, lane in ipairs(lanes) do
    local position, offsets = fact_of(lane.b)  -- a position is of the time before the ordering changed
    local mine, others = held_of(offsets, valid and slices or NOTHING, lane.a)
    local _, rest = compared(others, valid and done or NOTHING)
    if position ~= '0' then
      mine, rest = NOTHING, NOTHING
      refused[#refused + 1] = lane.lo .. '-' .. lane.hi .. ' ' .. lane.a .. ' ' .. lane.b .. ';'
    end
    if #mine > 0 then facts[#facts + 1] = { lo = lane.lo, hi = lane.hi, position = '0', offsets = united(mine) } end
    if #rest > 0 then
      refused[#refused + 1] = lane.lo .. '-' .. lane.hi .. ' ' .. lane.a .. ' 0,' .. string.gsub(text_of(united(rest)), ' ', ',') .. ';'
    end
  end
  return facts, refused
end

for i, keys in ipairs(K.partitions) do
  local topic, partition, id = place_of(keys.owners)
  ids[topic] = ids[topic] or string.match(redis.call('HGET', K.topics, topic) or '', '^(%S+)') or ''
  local find = is_without_order() and slice_facts or owned_facts
  local facts, refused = find(from_text(A.facts[i]), keys, current and ids[topic] == id)
  local segments, more = {}, false
  if #facts > 0 then segments, more = raised(keys, facts) end
  moves = moves or more
  if #facts > 0 and #segments == 0 then return positions_gone(keys.segments) end
  for _, s in ipairs(segments) do
    if #s.ics > 0 or (s.fact and s.fact.position ~= s.position) then exactly = '' end
  end
  if #facts > 0 then moved[#moved + 1] = { keys = keys, partition = partition, segments = segments } end
  if #refused > 0 then exactly = '' end
  refusals[#refusals + 1] = table.concat(refused)
end
local authorized = redis.call('HGET', K.member, 'authorized')
if moves and A.digest ~= '' and authorized ~= A.digest and authorized ~= 'unknown' then
  renew(K.leases)
  return reply('refused', '', 'exactly', '', 'unread', '1')
end
local stable = {}
for _, m in ipairs(moved) do write_progress(m.keys, m.partition, m.segments, stable) end
write_stable(stable)
redis.call('ZREM', K.batches, call.member)
renew(K.leases)
return reply('refused', table.concat(refusals, '\n'), 'exactly', exactly, 'unread', '')
