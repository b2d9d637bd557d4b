-- Reserves offsets x hashes of a partition for a worker, renews the reservation, or ends it (rule: ordered-commit).
-- `ended` deletes it, with all reservations of the worker that begin in these offsets and have some of these hashes.
-- Returns whether the worker has its turn. Drops reservations whose offsets are done in each of their hashes.
-- A.partition, A.worker, A.offsets: "40-44", A.state: held | parked | ended, A.lease_ms,
-- A.lanes: "lo-hi epoch;..."; hashes that the caller no longer owns at their lane epoch do not count,
-- A.reach: end of the caller's batch in these lanes, "-" without a batch: then the log end is the end
-- Reply stable offset, turn: TURN | WAIT | ALONE | TAKEN | BEYOND | NOT_OWNED, who: "member/worker 40-44 lo-hi" or ""
--   WAIT: `who` has a reservation that begins at a lower offset, and offsets of it before the caller's are missing
--   ALONE: as WAIT, and the lease of `who` has ended; or the caller's own hashes miss lower offsets, and no worker has a
--   reservation that begins before. The script ends a parked reservation
--   TAKEN: `who`, of the same member, has some of it. Workers of other members cannot commit hashes of the caller
--   BEYOND: the caller's batch does not read the offsets from `who` on
--   | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses damage, leases, names, prelude, progress
local bad = lost() or recovering() or fenced(K.member)
if bad then return bad end
local now, me, segments = now_ms(), call.member .. '/' .. A.worker, cut_segments(K, NOTHING)
if #segments == 0 then return positions_gone(K.segments) end
local stable = segments[1].position
for _, s in ipairs(segments) do stable = less(s.position, stable) and s.position or stable end
local function turned(word, who) return reply('stable', stable, 'turn', word, 'who', who or '') end

-- Whether any of the offsets from `from` to before `past` is missing in any of these hashes.
local function missing(hashes, from, past)
  for _, piece in ipairs(overlay(hashes, segments)) do
    local s = piece.right
    local at = less(from, s.position) and s.position or from
    local above = s.ics[beyond(s.ics, 1, at)]
    if above and not less(at, above[1]) then at = above[2] end
    if less(at, past) then return true end
  end
  return false
end

-- "40-44 lo-hi lo-hi" -> {from, past, hashes}
local function rectangle(text)
  local offsets, words = string.match(text, '^(%d+%-%d+)( .+)$')
  local from, past, hashes = nil, nil, {}
  if offsets then from, past = unpack(offsets_of(offsets)[1]) end
  for word in string.gmatch(words or '', ' (%S*)') do
    local h, last = hashes_of(word), hashes[#hashes]
    hashes[#hashes + 1] = { lo = h.lo, hi = h.hi }
    offsets = h.sound and not (last and h.lo <= last.hi) and offsets
  end
  check(offsets, text .. ' of ' .. K.reserved)
  return { text = text, from = from, past = past, hashes = hashes }
end

local owned = {}
for _, piece in ipairs(overlay(from_text(A.lanes), ranges_of(K, 'owners', OWNER))) do
  local epoch, member = owner(piece.right and piece.right.value)
  if member == call.member and epoch == piece.left.a then owned[#owned + 1] = { lo = piece.lo, hi = piece.hi, value = '' } end
end
if #owned == 0 then return turned('NOT_OWNED') end
local words = { A.offsets }
for i, r in ipairs(coalesce(owned, {})) do words[i + 1] = r.lo .. '-' .. r.hi end
local mine = rectangle(table.concat(words, ' '))
local reach = A.reach ~= '-' and A.reach or redis.call('HGET', K.log_end, A.partition) or '0'
check(number(reach), A.partition .. ' of ' .. K.log_end)
if less(reach, mine.past) and missing(mine.hashes, '0', mine.past) then return turned('BEYOND', reach) end

local found, reserved = {}, redis.call('HGETALL', K.reserved)
for i = 1, #reserved, 2 do
  local theirs = rectangle(reserved[i])
  theirs.worker, theirs.state, theirs.its_end, theirs.length =
    string.match(reserved[i + 1], '^(%S+) (%S+) until (%d+) for (%d+)$')
  found[#found + 1] = theirs
end
local taken, before, alone
for _, theirs in ipairs(found) do
  if not theirs.worker or not missing(theirs.hashes, theirs.from, theirs.past) then
    redis.call('HDEL', K.reserved, theirs.text)
  elseif theirs.worker ~= me then
    local at = cut_to(now + tonumber(theirs.length), theirs.its_end, 'a reservation', function(most)
      redis.call('HSET', K.reserved, theirs.text, theirs.worker .. ' ' .. theirs.state .. ' until ' .. most .. ' for ' .. theirs.length)
    end)
    local live, who = tonumber(at) >= now, theirs.worker .. ' ' .. theirs.text
    local past = less(theirs.past, mine.from) and theirs.past or mine.from
    if less(theirs.from, mine.from) and missing(theirs.hashes, theirs.from, past) then
      if live then before = who else alone = who end
    end
    local rival = live and string.sub(theirs.worker, 1, #call.member + 1) == call.member .. '/'
    if rival and less(theirs.from, mine.past) and less(mine.from, theirs.past) then
      for _, piece in ipairs(overlay(mine.hashes, theirs.hashes)) do taken = piece.right and who or taken end
    end
  end
end

if A.state == 'ended' then
  for _, theirs in ipairs(found) do
    if theirs.worker == me and not less(theirs.from, mine.from) and less(theirs.from, mine.past) then
      for _, piece in ipairs(overlay(mine.hashes, theirs.hashes)) do
        if piece.right then redis.call('HDEL', K.reserved, theirs.text) end
      end
    end
  end
end
if taken then return turned('TAKEN', taken) end
if not alone and missing(mine.hashes, '0', mine.from) then alone = '' end
local state, lease = A.state, A.lease_ms
if state == 'parked' and alone and not before then state = 'ended' end
if A.state ~= 'ended' then
  local ends = state == 'ended' and '0 for 0' or ms(now + tonumber(lease)) .. ' for ' .. lease
  redis.call('HSET', K.reserved, mine.text, me .. ' ' .. state .. ' until ' .. ends)
  expire_with_group(K.reserved)
end
if before then return turned('WAIT', before) end
return turned(alone and 'ALONE' or 'TURN', alone)
