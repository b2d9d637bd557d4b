-- Acquires wanted hash ranges that are free or takeable, at a new lane epoch (rule: no-epoch-twice). Ranges that the
-- member owns already keep their lane epochs. Cuts segments and ICs at each change of ownership (rule: cut-at-ownership).
-- A.wanted: "lo-hi ;..." of each partition, "lo-hi one;..." at one lane epoch; each recorded partition has positions
-- Reply reset, topics as HGETALL, and of each partition: owned "lo-hi epoch;...", segments and ics as HGETALL
--   segments: all if the partition has ICs, else those of owned ranges (rule: owner-reads-own-segments)
--   | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses damage, events, leases, names, ownership, prelude, progress
local bad = lost() or fenced(K.member) or recovering() or other_policy(K.member)
if bad then return bad end
grant_grace(K.leases)
local epoch, taken, gained, lost_to_us, loss = nil, {}, {}, {}, nil
local owned_of, segments_of, ics_of = {}, {}, {}  -- by index of the partition

local function new_owner()
  if not epoch then epoch = call.nonce .. '.' .. ms(redis.call('HGET', META, 'epochs') + 1) end
  return epoch .. ' ' .. call.member
end

-- A wanted range that is to have one lane epoch gets a new one, if the caller owns all of it at several (rule: partition-order).
local function unite(pieces)
  local first, apart, others = {}, {}, {}
  for _, p in ipairs(pieces) do
    local w, _, member = p.left, owner(p.value)
    first[w] = first[w] or p.value
    apart[w] = apart[w] or p.value ~= first[w]
    others[w] = others[w] or member ~= call.member
  end
  for _, p in ipairs(pieces) do
    if p.left.a == 'one' and apart[p.left] and not others[p.left] then p.value = new_owner() end
  end
end

-- The pieces of a hash whose values have this form, of individual commits without it; nil if no piece is new.
local function cut(key, pattern, owned)
  local whole, pieces = pattern and ranges_at(key, pattern) or ics_at(key), {}
  for _, piece in ipairs(overlay(whole, owned)) do
    pieces[#pieces + 1] = { lo = piece.lo, hi = piece.hi, value = piece.left.value }
  end
  return #pieces > #whole and pieces or nil
end

local topics = redis.call('HGETALL', K.topics)
local recorded = {}  -- topic -> its number of partitions
for i = 1, #topics, 2 do
  local _, count = check_topic(topics[i + 1], topics[i], K.topics)
  recorded[topics[i]] = tonumber(count)
end

local function acquire(keys, wanted)
  local owners_key, segments_key, ics_key = keys.owners, keys.segments, keys.ics
  local topic, partition = string.match(segments_key, ':segments:(.+):(%d+)$')
  if redis.call('EXISTS', segments_key) == 0 then
    -- A topic that was created again may have more partitions than Redis has recorded. `recreate` places them later.
    local never_placed = recorded[topic] and tonumber(partition) >= recorded[topic] and redis.call('EXISTS', owners_key) == 0
    loss = loss or not never_placed and positions_gone(segments_key)
    return ''
  end
  loss = loss or not recorded[topic] and { 'LOST', topic .. ' of ' .. K.topics .. ' is gone' }
  local before, after, gains = ranges_at(owners_key, OWNER), {}, false
  local pieces = overlay(wanted, before)
  for _, piece in ipairs(pieces) do
    local value = piece.right and piece.right.value
    local _, member = owner(value)
    if not member or (member ~= call.member and takeable(K.leases, K.batches, member)) then
      value = new_owner()
      if member then
        lost_to_us[member] = lost_to_us[member] or {}
        note_range(lost_to_us[member], owners_key, piece.lo, piece.hi)
      end
    end
    piece.value = value
  end
  unite(pieces)
  for _, piece in ipairs(pieces) do
    if epoch and piece.value == new_owner() then
      gains = true
      note_range(gained, owners_key, piece.lo, piece.hi)
    end
    after[#after + 1] = { lo = piece.lo, hi = piece.hi, value = piece.value }
  end
  for _, piece in ipairs(overlay(before, wanted)) do
    if not piece.right then after[#after + 1] = { lo = piece.lo, hi = piece.hi, value = piece.left.value } end
  end
  after = coalesce(ascending(after), {})
  taken[#taken + 1] = { owners_key, gains and after or nil }
  taken[#taken + 1] = { segments_key, cut(segments_key, OFFSET, after) }
  taken[#taken + 1] = { ics_key, cut(ics_key, nil, after) }
  local mine = {}
  for _, o in ipairs(after) do
    local e, member = owner(o.value)
    if member == call.member then mine[#mine + 1] = o.lo .. '-' .. o.hi .. ' ' .. e .. ';' end
  end
  return table.concat(mine)
end

local function within(key, owned)  -- the pieces of a hash in these ranges, in the form of HGETALL
  local flat = {}
  for _, piece in ipairs(overlay(from_hash(redis.call('HGETALL', key)), owned)) do
    if piece.right then
      flat[#flat + 1] = piece.lo .. '-' .. piece.hi
      flat[#flat + 1] = piece.left.value
    end
  end
  return flat
end

for i, keys in ipairs(K.partitions) do owned_of[i] = acquire(keys, from_text(A.wanted[i])) end
if loss then return loss end
for _, hash in ipairs(taken) do
  if hash[2] then replace(hash[1], hash[2]) end
end
if epoch then redis.call('HINCRBY', META, 'epochs', 1) end
for i, mine in ipairs(owned_of) do
  local segments_key = K.partitions[i].segments
  ics_of[i] = redis.call('HGETALL', K.partitions[i].ics)
  if #ics_of[i] > 0 then  -- an owner checks whether another member owns the lane behind
    segments_of[i] = redis.call('HGETALL', segments_key)
  else
    segments_of[i] = within(segments_key, from_text(mine))
  end
end
write_lost_events(K.events, lost_to_us, 'acquired by ' .. call.member .. ' after the end of the lease, or of longestBatch')
if epoch then event(K.events, 'assigned', 'lane epoch ' .. epoch, ranges_text(gained)) end
renew(K.leases)
local reset = redis.call('HGET', META, 'reset_epoch')
return reply('reset', reset, 'topics', topics, 'owned', owned_of, 'segments', segments_of, 'ics', ics_of)
