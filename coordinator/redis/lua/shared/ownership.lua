-- Changes of ownership: notes and frees ranges, and writes their events (rule: ownership-events).
-- Uses damage, events, names, prelude

-- Adds a range that changes its owner to `ranges`, ascending. It joins the range to its neighbour.
local function note_range(ranges, owners_key, lo, hi)
  local last = ranges[#ranges]
  if last and last.key == owners_key and step(last.hi, 1) == lo then
    last.hi = hi
  else
    ranges[#ranges + 1] = { key = owners_key, lo = lo, hi = hi }
  end
end

-- Frees the pieces of the caller's ranges for which `frees(wanted, epoch)` is true. Returns them in the form of
-- `note_range`. A.ranges[i] has the wanted ranges of K.partitions[i]. `cut`, if given, cuts the wanted ranges of an owners
-- key.
local function free_ranges(frees, cut)
  local ranges, left = {}, {}
  for i, keys in ipairs(K.partitions) do
    local owners_key, wanted, after = keys.owners, from_text(A.ranges[i]), {}
    if cut then wanted = cut(owners_key, wanted) end
    for _, piece in ipairs(overlay(ranges_at(owners_key, OWNER), wanted)) do
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

-- Ranges as text for the events stream: "orders-0 whole, orders-1 lo-hi".
local function ranges_text(ranges)
  local words = {}
  for i, r in ipairs(ranges) do
    local topic, partition = string.match(r.key, ':owners:(.+):(%d+)$')
    local whole = r.lo == '0000000000000000' and r.hi == '7fffffffffffffff'
    words[i] = topic .. '-' .. partition .. ' ' .. (whole and 'whole' or r.lo .. '-' .. r.hi)
  end
  return table.concat(words, ', ')
end

-- Adds the ranges of all owners of a partition to `lost_by`, by member. The caller makes their lane epochs void.
local function note_ranges_of_owners(lost_by, owners_key)
  for _, o in ipairs(ranges_at(owners_key, OWNER)) do
    local _, member = owner(o.value)
    if member then
      lost_by[member] = lost_by[member] or {}
      note_range(lost_by[member], owners_key, o.lo, o.hi)
    end
  end
end

-- Writes one event for each member in `lost_by`, in the order of their names.
local function write_lost_events(key, lost_by, why)
  local members = {}
  for member in pairs(lost_by) do members[#members + 1] = member end
  table.sort(members)
  for _, member in ipairs(members) do event(key, 'lost', why, ranges_text(lost_by[member]), member) end
end
