-- Positions and individual commits (ICs), as `coordinator/progress/segments.py` defines them (rule: ics-may-vanish).
-- Offsets are decimal texts. A set of offsets is {{start, until}, ...}: half-open, ascending, not touching.
-- In Redis a set is inclusive: "53-60 71-71".
-- Uses arguments, damage, events, leases, prelude
local NOTHING = {}

local function shifted(offset, by)  -- the offset before (-1) or after (1) this one; exact beyond 2^53
  if #offset < 16 then return string.format('%.0f', tonumber(offset) + by) end
  local high, low = tonumber(string.sub(offset, 1, -16)), tonumber(string.sub(offset, -15)) + by
  if low < 0 then high, low = high - 1, 999999999999999 end
  if low > 999999999999999 then high, low = high + 1, 0 end
  return (high > 0 and string.format('%.0f', high) or '') .. string.format('%015.0f', low)
end

-- "53-60 71-71" or "53-60,71-71" -> its offsets; for any other text nil, and the number of its letters that are right
local function parsed_offsets(text)
  local ranges, length, before = {}, 0, nil
  for first, last, gap in string.gmatch(text, '(%d+)%-(%d+)([ ,]?)') do
    local r = { first, shifted(last, 1) }
    if not less(first, r[2]) or (before and less(first, before[2])) then break end
    length = length + #first + #last + 1 + #gap
    ranges[#ranges + 1], before = r, r
  end
  local sound = length == #text and (not before or number(before[2]))
  return sound and ranges or nil, length
end

local function offsets_of(text)  -- the same; an error for any other text
  local ranges, length = parsed_offsets(text)
  check(ranges, 'the text after letter ' .. length .. ' of offsets')
  return ranges
end

local function text_of(offsets)
  if #offsets == 0 then return '' end
  local words = {}
  for i, r in ipairs(offsets) do words[i] = r[1] .. '-' .. shifted(r[2], -1) end
  return table.concat(words, ' ')
end

local function beyond(offsets, i, offset)  -- the first index from i on whose range ends after `offset`
  local past, stride = i, 1
  while offsets[past] and not less(offset, offsets[past][2]) do
    i, past, stride = past + 1, past + stride, 2 * stride
  end
  past = math.min(past, #offsets + 1)
  while i < past do
    local middle = math.floor((i + past) / 2)
    if less(offset, offsets[middle][2]) then past = middle else i = middle + 1 end
  end
  return i
end

-- Adds the offsets of `done` to a segment. Puts the index of each range of `done` that adds offsets in `fresh`.
-- position 43, ICs 45-47 50-50, done 43-44  ->  position 48, ICs 50-50
local function joined(position, ics, done, fresh)
  if #ics == 0 and #done == 0 then return position, NOTHING end
  local above, i, j = {}, beyond(ics, 1, position), beyond(done, 1, position)
  while ics[i] or done[j] do
    local from_done = not ics[i] or (done[j] and less(done[j][1], ics[i][1]))
    local r, last = from_done and done[j] or ics[i], above[#above]
    if from_done then fresh[j] = true end
    if not last and not less(position, r[1]) then
      position = r[2]
    elseif last and not less(last[2], r[1]) then
      last[2] = r[2]
    else
      above[#above + 1] = { r[1], r[2] }
    end
    i, j = beyond(ics, i, r[2]), beyond(done, j, r[2])
  end
  return position, above
end

-- The individual commits of a partition: ranges with `offsets`. They may vanish (rule: ics-may-vanish). So the script
-- deletes damaged ones at once, with an event.
local function ics_at(key)
  local sound, last, damaged = {}, nil, 0
  for _, r in ipairs(from_hash(redis.call('HGETALL', key))) do
    r.offsets = parsed_offsets(r.value)
    if r.sound and not (last and r.lo <= last) and r.offsets and r.value ~= '' and text_of(r.offsets) == r.value then
      sound[#sound + 1], last = r, r.hi
    else
      damaged = damaged + 1
    end
  end
  if damaged > 0 then
    replace(key, sound)
    event(EVENTS, 'mend', key .. ' had ' .. damaged .. ' damaged entries; they are deleted, and their offsets are read again')
    expire_with_group(EVENTS)
  end
  return sound
end

-- A hash of a partition, by its name in `keys`. The script reads it once, before it writes.
local function ranges_of(keys, name, pattern)
  keys.read = keys.read or {}
  keys.read[name] = keys.read[name] or ranges_at(keys[name], pattern)
  return keys.read[name]
end

-- The segments of a partition, cut at the ends of `facts` {lo, hi, position, offsets}:
-- {lo, hi, position, ics, fact or nil}. Positions and ICs are those from before the facts.
local function cut_segments(keys, facts)
  keys.read = keys.read or {}
  keys.read.ics = keys.read.ics or ics_at(keys.ics)
  local cut, ics = {}, keys.read.ics
  for _, p in ipairs(overlay(overlay(ranges_of(keys, 'segments', OFFSET), ics), facts)) do
    local held = p.left.right
    cut[#cut + 1] = { lo = p.lo, hi = p.hi, position = p.left.left.value, ics = held and held.offsets or NOTHING,
      fact = p.right }
  end
  return cut
end

-- The segments with `facts`: all offsets left of `position` are done, and so are `offsets`. Done offsets stay done.
-- The second value is true if a fact adds offsets.
local function raised(keys, facts)
  local after, more = cut_segments(keys, facts), false
  for _, s in ipairs(after) do
    local fact, fresh = s.fact or NOTHING, {}
    if fact.position and less(s.position, fact.position) then s.position, more = fact.position, true end
    s.position, s.ics = joined(s.position, s.ics, fact.offsets or NOTHING, fresh)
    more = more or next(fresh) ~= nil
  end
  return after, more
end

-- Writes the whole hash of a partition; only the values if its ranges stay the same.
local function rewrite(keys, name, after)
  local before = keys.read and keys.read[name]
  if not before or #before ~= #after then return replace(keys[name], after) end
  local changed = {}
  for i, r in ipairs(after) do
    if before[i].lo ~= r.lo or before[i].hi ~= r.hi then return replace(keys[name], after) end
    if before[i].value ~= r.value then changed[#changed + 1] = r end
  end
  set(keys[name], changed)
end

-- Writes stable offsets: key -> {partition, offset, ...}.
local function write_stable(offsets)
  for key, flat in pairs(offsets) do
    for i = 1, #flat, 1000 do redis.call('HSET', key, unpack(flat, i, math.min(i + 999, #flat))) end
  end
end

-- Writes segments and ICs. Joins equal neighbours, but not across a change of ownership (rule: cut-at-ownership).
-- Writes the stable offset, or adds it to `later` for `write_stable`.
local function write_progress(keys, partition, segments, later)
  local boundaries, stable, positions, ics = {}, nil, {}, {}
  for _, o in ipairs(#segments > 1 and ranges_of(keys, 'owners', OWNER) or NOTHING) do
    boundaries[o.lo], boundaries[step(o.hi, 1)] = true, true
  end
  for _, s in ipairs(segments) do
    if not stable or less(s.position, stable) then stable = s.position end
    s.text = text_of(s.ics)
    s.value = s.position .. ' ' .. s.text
  end
  for _, s in ipairs(coalesce(segments, boundaries)) do
    positions[#positions + 1] = { lo = s.lo, hi = s.hi, value = s.first.position }
    if s.first.text ~= '' then ics[#ics + 1] = { lo = s.lo, hi = s.hi, value = s.first.text } end
  end
  rewrite(keys, 'segments', positions)
  rewrite(keys, 'ics', ics)
  if stable then
    local offsets = later or {}
    local flat = offsets[keys.stable] or {}
    offsets[keys.stable], flat[#flat + 1], flat[#flat + 2] = flat, partition, stable
    if not later then write_stable(offsets) end
  end
  return stable
end

-- "43,45-47,50-50" -> the position 43, and the done offsets above it
local function fact_of(text)
  local position, offsets = string.match(text, '^(%d+),?(.*)$')
  require_argument(position and is_position(position), 'position', text)
  if offsets == '' then return position, NOTHING end
  return position, offsets_of(offsets or '')
end
