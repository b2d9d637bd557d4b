-- AvailableNow: checks whether every hash is at its target, or parked at its position, in ranges of any owner. Of a
-- pinned member only the hashes that it names count. If so, the member is leaving (rule: available-now). The script reads
-- parked lanes and keys itself: an operator may have just released one.
-- In partition order a parked record stops its whole partition (rule: partition-order).
-- A.targets: {name, target, hashes, ordered} of each partition, name "topic partition", hashes "lo-hi ;..." that count, nil
-- for all; ordered is set in partition order. Until then other members learn those that were not known at the join.
-- Reply finished: 1 or 0 | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses damage, failing, leases, names, prelude, progress
local bad = lost() or fenced(K.member) or recovering()
if bad then return bad end

local parked = {}  -- by partition: {lo, hi, start, stop}; hash ranges may overlap at other offsets
local strikes = redis.call('HGETALL', K.strikes)
for i = 1, #strikes, 2 do
  local tp, lo, hi = string.match(strikes[i], '^(%S+ %d+) (%x+)-(%x+)$')
  local word, start, stop = string.match(strikes[i + 1], '^(%a+) %d+ (%d+)-(%d+) ')
  check(tp and word, strikes[i] .. ' of ' .. K.strikes)
  check_ranges(from_hash({ lo .. '-' .. hi, '' }), K.strikes, '')
  parked[tp] = parked[tp] or {}
  if word == 'parked' then table.insert(parked[tp], { lo = lo, hi = hi, start = start, stop = stop }) end
end

local keys = {}  -- by partition: {lo, hi, offset} of its parked keys
local failing = redis.call('HGETALL', K.failing)
for i = 1, #failing, 2 do
  local tp, hash = failing_key(failing[i])
  local word, offset = failing_of(failing[i + 1])
  check(tp and word, failing[i] .. ' of ' .. K.failing)
  keys[tp] = keys[tp] or {}
  if word == 'parked' then table.insert(keys[tp], { lo = hash, hi = hash, offset = offset }) end
end

local function all_parked(tp, segment)  -- at its position; members still read the offsets before a parked slice
  local rest = { segment }
  for _, p in ipairs(parked[tp] or NOTHING) do
    if not less(segment.position, p.start) and less(segment.position, p.stop) then
      local others = {}
      for _, piece in ipairs(overlay(rest, { p })) do
        if not piece.right then others[#others + 1] = piece end
      end
      rest = others
    end
  end
  return #rest == 0
end

local function within(segments, hashes)  -- the pieces of segments in these hashes
  local pieces = {}
  for _, piece in ipairs(overlay(segments, hashes)) do
    if piece.right then pieces[#pieces + 1] = { lo = piece.lo, hi = piece.hi, position = piece.left.position } end
  end
  return pieces
end

local function tell_targets()  -- to other members: those that this one did not know when it joined
  local told = redis.call('HGET', K.targets, call.member) or ''
  local text = told
  for _, of in ipairs(A.targets) do
    if not string.find(';' .. told, ';' .. of.name .. ' ', 1, true) then text = text .. of.name .. ' ' .. of.target .. ';' end
  end
  if text ~= told then redis.call('HSET', K.targets, call.member, text) end
end

for i, of in ipairs(A.targets) do
  local tp, target, segments = of.name, of.target, raised(K.partitions[i], NOTHING)
  if #segments == 0 then return positions_gone(K.partitions[i].segments) end
  local counted, unread = of.hashes and within(segments, from_text(of.hashes)) or segments, {}
  for _, piece in ipairs(overlay(counted, ascending(keys[tp] or {}))) do
    local s = { lo = piece.lo, hi = piece.hi, position = piece.left.position }
    if (piece.right and piece.right.offset == s.position) or all_parked(tp, s) then
      if of.ordered and less(s.position, target) then target = s.position end
    else
      unread[#unread + 1] = s.position
    end
  end
  for _, position in ipairs(unread) do
    if less(position, target) then
      tell_targets()
      renew(K.leases)
      return reply('finished', 0)
    end
  end
end
redis.call('SADD', K.leaving, call.member)
renew(K.leases)
return reply('finished', 1)
