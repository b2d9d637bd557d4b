-- Individual commits of one partition: offset ranges x the hashes that the member owns at the lane epochs of the call
-- (rule: commit-within-read). The script commits all of these, or nothing.
-- A.reset: reset epoch, A.topic, A.id: of the topic, A.partition, A.lanes: "lo-hi epoch;...",
-- A.offsets: "45-47 50-50", ascending and not touching, A.most: ICs that a partition may hold,
-- A.reads: "lo-hi until;...", ends of the caller's batch, "-" without a batch: then the log end is the end,
-- A.batch: digest of the caller's batch, "" without a batch: its early ends apply while Redis has its seal
-- A.early: whether tasks of this batch may end early, so that nothing is committed while Redis does not have its seal
-- Reply outcome, stable offset, held: number of ICs, repeated: number of ranges that were done before,
--   refused "lo-hi epoch;...", reach
--   outcome: COMMITTED, NOT_ALLOWED (88), TOPIC_NOT_ALLOWED (89), TOO_OLD (91), FULL (92), NOT_OWNED, BEYOND, UNSEALED
--   COMMITTED writes progress. The first FULL of a partition writes `full` and `joins` of meta, and an event.
--   BEYOND: no lane of the call has read the offsets from `reach` on; a commit of them would lose records
--   UNSEALED: Redis does not know how far the tasks of the batch read
--   | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Of a pinned member, only the ICs in the hashes that it names count: no assignment ever moves the others.
-- Uses damage, events, leases, names, pinned, policies, prelude, progress
local bad = lost() or recovering() or fenced(K.member)
if bad then return bad end
local stable, most, done = redis.call('HGET', K.stable, A.partition) or '0', tonumber(A.most), offsets_of(A.offsets)
local owned, refused, reach = {}, {}, '0'
check(string.match(stable, OFFSET), A.partition .. ' of ' .. K.stable)
local log_end = redis.call('HGET', K.log_end, A.partition) or '0'
check(number(log_end), A.partition .. ' of ' .. K.log_end)

local function outcome(word, held, repeated)
  return reply('outcome', word, 'stable', stable, 'held', held or 0, 'repeated', repeated or 0,
    'refused', table.concat(refused), 'reach', reach)
end

local batch = redis.call('HMGET', K.member, 'authorized', 'seal')
local seal = batch[1] == A.batch and batch[2]

-- The early ends of the caller's batch {lo, hi, value = the first offset that its task did not read}, in layers of
-- disjoint ranges: a replay adds lower ends of keys that it defers (rule: replay-may-defer).
local function early_ends()
  local ends = {}
  for topic, partition, hashes, offset in string.gmatch(seal or '', '(%S+) (%S+) (%S+) ([^%s;]+);') do
    check(hashes_of(hashes).sound and number(offset), 'seal of ' .. K.member)
    if topic == A.topic and partition == A.partition then
      ends[#ends + 1], ends[#ends + 2] = hashes, offset
    end
  end
  local layers = {}
  for _, range in ipairs(from_hash(ends)) do
    local i = 1
    while layers[i] and layers[i][#layers[i]].hi >= range.lo do i = i + 1 end
    layers[i] = layers[i] or {}
    table.insert(layers[i], range)
  end
  return layers
end

local function ended(lanes, ends)  -- the lanes, up to the ends
  local pieces = {}
  for i, piece in ipairs(overlay(lanes, ends)) do
    local past, early = piece.left.b, piece.right and piece.right.value
    if early and less(early, past) then past = early end
    pieces[i] = { lo = piece.lo, hi = piece.hi, a = piece.left.a, b = past }
  end
  return pieces
end

-- The lanes of the call {lo, hi, a = lane epoch, b = the first offset that the call may not commit}.
local function lanes_of_call()
  local lanes, everywhere = {}, { lo = '0000000000000000', hi = '7fffffffffffffff', a = log_end }
  for _, piece in ipairs(overlay(from_text(A.lanes), A.reads == '-' and { everywhere } or from_text(A.reads))) do
    lanes[#lanes + 1] = { lo = piece.lo, hi = piece.hi, a = piece.left.a, b = piece.right and piece.right.a or '0' }
  end
  for _, ends in ipairs(early_ends()) do lanes = ended(lanes, ends) end
  for _, lane in ipairs(lanes) do
    if less(reach, lane.b) then reach = lane.b end
  end
  return lanes
end

local below = {}
local function done_below(offset)  -- ranges of the call before `offset`: a lane may read less than its neighbours
  if not below[offset] then
    local some = {}
    for i, r in ipairs(done) do
      if not less(r[1], offset) then break end
      some[i] = { r[1], less(r[2], offset) and r[2] or offset }
    end
    below[offset] = some
  end
  return below[offset]
end

local code = forbidding_code(K.policy, A.topic)
if code then return outcome(code == '88' and 'NOT_ALLOWED' or 'TOPIC_NOT_ALLOWED') end
local known = string.match(redis.call('HGET', K.topics, A.topic) or '', '^(%S+)')
local current = known == A.id and redis.call('HGET', META, 'reset_epoch') == A.reset
for _, piece in ipairs(overlay(lanes_of_call(), ranges_of(K, 'owners', OWNER))) do
  local epoch, member = owner(piece.right and piece.right.value)
  if current and member == call.member and epoch == piece.left.a then
    owned[#owned + 1] = { lo = piece.lo, hi = piece.hi, value = piece.left.b }
  else
    refused[#refused + 1] = piece.lo .. '-' .. piece.hi .. ' ' .. piece.left.a .. ';'
  end
end
if #owned == 0 then return outcome('NOT_OWNED') end
if not less(stable, done[#done][2]) then return outcome('TOO_OLD') end
if A.early and not seal then return outcome('UNSEALED') end
if less(reach, done[#done][2]) then return outcome('BEYOND') end

local segments, before, after, fresh = cut_segments(K, coalesce(owned, {})), 0, 0, {}
local named, counts = redis.call('HGET', K.member, 'pinned'), {}
local hashes = named and (pinned_ranges(named, K.member)[A.topic .. ' ' .. A.partition] or {}) or segments
for _, piece in ipairs(overlay(segments, hashes)) do counts[piece.left] = counts[piece.left] or piece.right end
for _, s in ipairs(segments) do before = before + (counts[s] and #s.ics or 0) end
local full, limit = 'full ' .. A.topic .. '-' .. A.partition .. (named and ' ' .. call.member or ''), math.max(most, before)
if before <= most / 2 then redis.call('HDEL', META, full) end
for _, s in ipairs(segments) do
  if s.fact then s.position, s.ics = joined(s.position, s.ics, done_below(s.fact.value), fresh) end
  after = after + (counts[s] and #s.ics or 0)
  if after > limit then
    if redis.call('HSETNX', META, full, '1') == 1 then
      redis.call('HINCRBY', META, 'joins', 1)  -- makes an assignment due: the lane behind may need another owner
      event(K.events, 'cap', A.topic .. '-' .. A.partition .. ' holds ' .. before .. ' of ' .. A.most
        .. ' individual commits: only lanes at stable offset ' .. stable .. ' and gaps are read')
    end
    return outcome('FULL', before)
  end
end
local repeated = 0
for _, some in pairs(below) do repeated = math.max(repeated, #some) end
for _ in pairs(fresh) do repeated = repeated - 1 end
if repeated > 0 then redis.call('HINCRBY', META, 'duplicate_commits', repeated) end
stable = write_progress(K, A.partition, segments)
return outcome('COMMITTED', after, repeated)
