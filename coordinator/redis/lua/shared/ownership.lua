-- Collects key ranges that change hands, ascending: "orders-0 whole, orders-1 lo-hi" in the events stream.
local function note_range(ranges, owners_key, lo, hi)
  local last = ranges[#ranges]
  if last and last.key == owners_key and step(last.hi, 1) == lo then
    last.hi = hi
  else
    ranges[#ranges + 1] = { key = owners_key, lo = lo, hi = hi }
  end
end

-- Frees pieces of the caller's ranges, those for which `frees(asked, epoch)`; returns them as `note` does. What is asked of
-- each partition stands in ARGV from 2 on, its owners in KEYS as many places further on.
local function free_ranges(places, frees)
  local ranges, left = {}, {}
  for i = 2, #ARGV do
    local owners_key, after = KEYS[i + places], {}
    for _, piece in ipairs(overlay(ranges_at(owners_key, OWNER), from_text(ARGV[i]))) do
      local epoch, member = owner(piece.left.value)
      if member == call.member and frees(piece.right, epoch) then
        note_range(ranges, owners_key, piece.lo, piece.hi)
      else
        after[#after + 1] = { lo = piece.lo, hi = piece.hi, value = piece.left.value }
      end
    end
    left[#left + 1] = { owners_key, coalesce(after, {}) }
  end
  for _, hash in ipairs(left) do replace(hash[1], hash[2]) end
  return ranges
end

local function ranges_text(ranges)
  local words = {}
  for i, r in ipairs(ranges) do
    local topic, partition = string.match(r.key, ':owners:(.+):(%d+)$')
    local whole = r.lo == '0000000000000000' and r.hi == '7fffffffffffffff'
    words[i] = topic .. '-' .. partition .. ' ' .. (whole and 'whole' or r.lo .. '-' .. r.hi)
  end
  return table.concat(words, ', ')
end

-- Adds the ranges of these owners to `lost_by`, by member: their lane epochs are about to be void.
local function note_ranges_of_owners(lost_by, owners_key)
  for _, o in ipairs(ranges_at(owners_key, OWNER)) do
    local _, member = owner(o.value)
    if member then
      lost_by[member] = lost_by[member] or {}
      note_range(lost_by[member], owners_key, o.lo, o.hi)
    end
  end
end

local function write_lost_events(key, lost_by, why)
  local members = {}
  for member in pairs(lost_by) do members[#members + 1] = member end
  table.sort(members)
  for _, member in ipairs(members) do event(key, 'lost', why, ranges_text(lost_by[member]), member) end
end
