-- Slices of a group without order: offsets of a partition that one member reads (rule: hand-out).
-- In Redis: "120-159" -> "<lane epoch> <member>". Sets of offsets are as in progress.lua.
-- Uses arguments, damage, names, prelude, progress

local without_order
local function is_without_order()
  if without_order == nil then without_order = redis.call('HGET', META, 'ordering') == 'none' end
  return without_order
end

local function handed_key(owners_key) return (string.gsub(owners_key, ':owners:', ':handed:', 1)) end

-- The slices of a partition, ascending and disjoint: {first offset, offset after the last, field, epoch, member}.
-- The last two are nil if the lane epoch is void.
local function slices_at(key)
  local slices, flat = {}, redis.call('HGETALL', key)
  for i = 1, #flat, 2 do
    local first, last = string.match(flat[i], '^(%d+)%-(%d+)$')
    local sound = first and number(first) and number(last) and is_position(last) and not less(last, first)
    check(sound, flat[i] .. ' of ' .. key)
    check(string.find(flat[i + 1], OWNER), 'the slice ' .. flat[i] .. ' of ' .. key)
    local epoch, member = owner(flat[i + 1])
    slices[#slices + 1] = { first, shifted(last, 1), flat[i], epoch, member }
  end
  table.sort(slices, function(a, b) return less(a[1], b[1]) end)
  for i = 2, #slices do check(not less(slices[i][1], slices[i - 1][2]), slices[i][3] .. ' of ' .. key) end
  return slices
end

-- The offsets that two sets have in common, and those of `some` that `others` has not.
-- some    |======|    |=====|
-- others     |=======|  |=|        common |==| |=|    rest |===|   |=| |=|
local function compared(some, others)
  local common, rest, j = {}, {}, 1
  for _, r in ipairs(some) do
    local start = r[1]
    while others[j] and not less(start, others[j][2]) do j = j + 1 end
    local i = j
    while others[i] and less(others[i][1], r[2]) do
      local from, till = others[i][1], others[i][2]
      if less(start, from) then rest[#rest + 1], start = { start, from }, from end
      if less(r[2], till) then till = r[2] end
      common[#common + 1], start = { start, till }, till
      i = i + 1
    end
    if less(start, r[2]) then rest[#rest + 1] = { start, r[2] } end
  end
  return common, rest
end

-- The offsets of a set that the caller holds at a lane epoch, and the rest.
local function held_of(offsets, slices, epoch)
  local mine = {}
  for _, s in ipairs(slices) do
    if s[4] == epoch and s[5] == call.member then mine[#mine + 1] = s end
  end
  return compared(offsets, mine)
end

-- The offsets that are done in all hashes: {{"0", stable offset}, ...}. `segments` are as `cut_segments` returns them.
local function done_everywhere(segments)
  local done
  for _, s in ipairs(segments) do
    local here = { { '0', s.position } }
    if s.position == '0' then here = {} end
    for _, r in ipairs(s.ics) do here[#here + 1] = r end
    done = done and compared(done, here) or here
  end
  return done or NOTHING
end

-- The same offsets; ranges that touch are one.
local function united(offsets)
  local joint = {}
  for _, r in ipairs(offsets) do
    local last = joint[#joint]
    if last and not less(last[2], r[1]) then last[2] = r[2] else joint[#joint + 1] = { r[1], r[2] } end
  end
  return joint
end
