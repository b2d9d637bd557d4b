-- Pinned members: each one names its own ranges, and no assignment is computed (rule: pinned-or-assigned). Its ranges
-- are its entry in the assignment. The entry is its claim: `look` refuses a pinned group's member without one.
-- Uses damage, leases, names, prelude
local PINNED = 'pinned'  -- in the place of a protocol: those of assignors end with a version
local MOST_UNREAD = 20  -- ranges in one event

local function group_is_pinned() return redis.call('HGET', META, 'protocol') == PINNED end

-- JSON of one member's ranges -> "topic partition" -> ranges, ascending
local function pinned_ranges(text, key)
  local found = {}
  local function parts(value)
    check(type(value) == 'table', 'an entry of ' .. key)
    return value
  end
  for topic, partitions in pairs(parts(cjson.decode(text))) do
    for partition, words in pairs(parts(partitions)) do
      local ranges = {}
      for i, hashes in ipairs(parts(words)) do
        check(type(hashes) == 'string', 'an entry of ' .. key)
        local h = hashes_of(hashes)
        check(h.sound, hashes .. ' of ' .. key)
        ranges[i] = { lo = h.lo, hi = h.hi }
      end
      found[topic .. ' ' .. partition] = ascending(ranges)
    end
  end
  return found
end

local function share_hashes(some, others)
  for tp, ranges in pairs(some) do
    for _, piece in ipairs(overlay(ranges, others[tp] or {})) do
      if piece.right then return true end
    end
  end
  return false
end

-- The claim of a member that joins, with its pinned ranges as JSON ("" if it is assigned ranges). Returns the member in
-- its way or nil, the members that lose their claims, and the ranges of this member and of each working one.
local function claim(pins, leases, batches, leaving, assignment)
  local was_pinned, replaced = group_is_pinned(), {}
  local claims = { pinned_ranges(pins == '' and '{}' or pins, 'the call') }

  -- Whether a member that is there holds this one. A member without an entry has no claim to pinned ranges.
  local function holds(other)
    local entry = redis.call('HGET', assignment, other)
    if pins == '' then return entry end
    if not was_pinned then return true end
    if not entry then return false end
    local theirs = pinned_ranges(entry, assignment)
    if redis.call('SISMEMBER', leaving, other) == 0 then claims[#claims + 1] = theirs end
    return share_hashes(claims[1], theirs)
  end

  if pins ~= '' or was_pinned then
    for _, other in ipairs(present_members(leases, batches)) do
      if other ~= call.member and holds(other) then return other, replaced, claims end
    end
  end
  for _, other in ipairs(pins ~= '' and was_pinned and redis.call('HKEYS', assignment) or {}) do
    local entry = pinned_ranges(redis.call('HGET', assignment, other), assignment)
    if other ~= call.member and share_hashes(claims[1], entry) then replaced[#replaced + 1] = other end
  end
  return nil, replaced, claims
end

-- The hash ranges that these members do not name, of the partitions that they name: "orders-0 lo-hi, ..."
local function unread_text(members)
  local ranges_of_all, names, words = {}, {}, {}
  for _, of_member in ipairs(members) do
    for tp, ranges in pairs(of_member) do
      if not ranges_of_all[tp] then names[#names + 1] = tp; ranges_of_all[tp] = {} end
      for _, r in ipairs(ranges) do table.insert(ranges_of_all[tp], r) end
    end
  end
  table.sort(names)
  for _, tp in ipairs(names) do
    local lo, shown = '0000000000000000', string.gsub(tp, ' ', '-')
    for _, r in ipairs(ascending(ranges_of_all[tp])) do
      if lo < r.lo then words[#words + 1] = shown .. ' ' .. lo .. '-' .. step(r.lo, -1) end
      if lo <= r.hi then lo = step(r.hi, 1) end
    end
    if lo < '8' then words[#words + 1] = shown .. ' ' .. lo .. '-7fffffffffffffff' end
  end
  local more = #words > MOST_UNREAD and ' and ' .. #words - MOST_UNREAD .. ' more' or ''
  return table.concat(words, ', ', 1, math.min(#words, MOST_UNREAD)) .. more
end
