-- Recovers after a loss of state: a new nonce, and only assertions until every known member is heard, for one session at
-- most (rule: recover-by-proof, rule: recovering-session). All lane epochs and leases become void. Every member joins
-- again; a living process keeps its incarnation. The slices that members have begun are forgotten: without their leases,
-- living members would look dead, and be struck. The assignment stays until the next one: other members leave the ranges
-- of a long batch to its member.
-- Positions that Redis still has stay. Proofs from the caller raise them.
-- Proofs of an older reset epoch do not count. If the proofs are of a newer reset epoch, Redis is from before a reset.
-- Its own positions prove nothing then.
-- A.nonce: the new one, A.why: for the event, A.reset: reset epoch of the proofs,
-- A.growths: "topic old new", "id seen until[ end,...]", ... that the caller knows,
-- A.policies: name, value, ... that are proven, nil if none are (rule: policies-survive),
-- A.parts: "topic partition" -> "lo-hi position;..." of partitions that the caller proves in part,
-- A.places: {topic, id, count, partition, position} of each partition, "-" for no proof of all its hashes,
-- A.extents: {text, proven} of each partition: the newest leader epoch of its proofs as `show` stores it, "" if unknown,
-- and the "lo-hi position;..." that are proven under it
-- Keeps the founding. If Redis lost it, it is the caller's; without any it is the new nonce (rule: one-founding).
-- Reply OK, with waits: a partition, while others may prove the rest of it | UNPROVEN partition | REPLACED | SCHEMA
-- Does nothing if another member has recovered the group already.
-- Uses arguments, damage, events, leader_epochs, leases, names, ownership, pinned, policies, prelude, progress
local bad = lost()
check_places()
check_reset(A.reset)
if bad and (bad[1] == 'SCHEMA' or bad[1] == 'REPLACED') then return bad end
if bad and bad[1] == 'ABSENT' then check_kinds() end
local reset = redis.call('HGET', META, 'reset_epoch') or '0'
local newer, older = less(reset, A.reset), less(A.reset, reset)
local survived, any_loss = redis.call('EXISTS', META) == 1, false

-- Proofs of several members add up (rule: proofs-add-up). They wait outside of the positions, which always tile.
--   member 1  |####------------|      member 2  |----############|      both  |################|
local parts, known, flat = A.parts, {}, redis.call('HGETALL', K.proofs)
for i = 1, #flat, 2 do known[flat[i]] = flat[i + 1] end
if call.founding ~= '' and (known.founding or '') ~= '' and known.founding ~= call.founding then
  return { 'REPLACED', known.founding }
end
local void = known.reset and less(known.reset, A.reset)  -- of before a reset
if void then known = {} end
if known.reset and less(A.reset, known.reset) then parts = {} end
local waiting, unproven = {}, nil

-- The segments of a partition, of what waits and what the caller proves; nil while a part of them is missing.
local function added_up(name)
  local whole = { { lo = '0000000000000000', hi = '7fffffffffffffff' } }
  local segments, text, all = {}, {}, true
  for _, p in ipairs(overlay(overlay(whole, from_text(known[name] or '')), from_text(parts[name] or ''))) do
    local one, other = p.left.right and p.left.right.a, p.right and p.right.a
    local position = one or other
    if one and other and less(one, other) then position = other end
    require_argument(not position or is_position(position), 'position', position or '')
    all = all and position
    segments[#segments + 1] = { lo = p.lo, hi = p.hi, position = position, ics = NOTHING }
    if position then text[#text + 1] = p.lo .. '-' .. p.hi .. ' ' .. position .. ';' end
  end
  if #text > 0 then waiting[name] = table.concat(text) end
  return all and segments or nil
end

-- One partition: the record of its topic, its stable offset, and its losses.
local function state_of_partition(i)
  local place, keys = A.places[i], K.partitions[i]
  local topic, id, count, partition, position = place.topic, place.id, place.count, place.partition, place.position
  local recorded, recorded_count = check_topic(redis.call('HGET', K.topics, topic), topic, K.topics)
  local there, stable = redis.call('EXISTS', keys.segments) == 1, redis.call('HGET', keys.stable, partition)
  local owned = redis.call('EXISTS', keys.owners) == 1
  -- Redis has no record of the topic. The group has not placed it yet, or Redis lost the record.
  local new_topic = not recorded
  -- The topic grew, or was created again with more partitions. The group has not placed the new partition yet.
  local new_partition = recorded and tonumber(partition) >= tonumber(recorded_count)
  -- Redis has stable offsets of its topic, but none of it: its leader did not answer when the others were placed.
  local left_out = redis.call('EXISTS', keys.stable) == 1
  -- The caller proves a position, or that of a part, and no later reset made the proof void: the group has read the partition.
  local proven = (position ~= '-' or parts[topic .. ' ' .. partition]) and not older
  -- Neither a proof nor a stable offset nor an owner shows that the group read it. `create_positions` places it later.
  local never_read = survived and not stable and not owned and not proven and (new_topic or new_partition or left_out)
  -- Redis lost the record of the topic and kept the positions.
  local lost_topic = there and not recorded
  -- Redis has no positions. That is no loss only if the group never read the partition.
  local lost_positions = not there and not never_read
  -- `missing`: Redis has no positions, or positions from before a reset.
  return { topic = topic, id = id, count = count, partition = partition, position = position, keys = keys, recorded = recorded,
    recorded_count = recorded == id and recorded_count or '0', missing = newer or not there, never_read = never_read,
    stable = stable, loss = lost_topic or lost_positions }
end

-- Whether to store the leader epoch of the proofs with the positions: a position may be from before a cut, and only the
-- leader epoch that Redis has with it shows that (rule: leader-epoch-facts). So Redis keeps it if a hash is done beyond
-- its own proof.
local function stores_extent(keys, partition, segments, extent)
  local epoch, reset_of, id = leader_epoch_of(extent.text)
  if extent.text == '' or older then return false end
  require_argument(epoch and reset_of == A.reset, 'leader epoch', extent.text)
  local stored, proven = redis.call('HGET', keys.epoch, partition), from_text(extent.proven)
  local stored_epoch, of_reset, of_topic = leader_epoch_of(stored)
  check(stored_epoch or not stored, partition .. ' of ' .. keys.epoch)
  if not (stored_epoch and of_reset == reset_of and of_topic == id) then return true end
  for _, p in ipairs(overlay(segments, proven)) do
    local s, proof = p.left, p.right and p.right.a or '0'
    require_argument(is_position(proof), 'position', proof)
    if less(proof, #s.ics > 0 and s.ics[#s.ics][2] or s.position) then return false end
  end
  return says_more(stored, extent.text)
end

for i = 1, #A.places do any_loss = any_loss or state_of_partition(i).loss end
if not bad and not newer and not any_loss then return reply() end
local placed, lost_by, counts = {}, {}, {}  -- counts: of topics with new partitions, the number of the others
for i = 1, #A.places do
  local p = state_of_partition(i)
  local topic, id, count, partition, recorded, missing = p.topic, p.id, p.count, p.partition, p.recorded, p.missing
  -- Redis recorded an earlier topic of this name. Proofs and its stable offset do not count; `recreate` follows later.
  local of_another = recorded and recorded ~= id and not newer
  local position = older and '-' or p.position
  -- Redis lost the positions and kept the stable offset of the same topic: all records before that offset are done.
  local stable_proves = missing and survived and not newer and not of_another and p.stable
  if stable_proves then
    check(number(p.stable), partition .. ' of ' .. p.keys.stable)
    if position == '-' or less(position, p.stable) then position = p.stable end
  end
  local added
  if position == '-' and missing and not p.never_read then
    added = added_up(topic .. ' ' .. partition)
    if not added then unproven = unproven or topic .. '-' .. partition end
  end
  if position == '-' and missing and not added then counts[topic] = p.recorded_count end
  if position ~= '-' or added or not missing then
    local proof = (position == '-' or of_another) and '0' or position
    local whole = { lo = '0000000000000000', hi = '7fffffffffffffff', position = proof, ics = NOTHING }
    local segments = added or (missing and { whole }) or raised(p.keys, { whole })
    local extent = stores_extent(p.keys, partition, segments, A.extents[i]) and A.extents[i].text
    placed[#placed + 1] = { keys = p.keys, topic = topic, id = id, count = (newer or not recorded) and count,
      partition = partition, segments = segments, extent = extent }
  end
end
if unproven then
  local until_ms = known['until'] or ms(now_ms() + tonumber(call.session))
  if not next(waiting) or tonumber(until_ms) <= now_ms() then return { 'UNPROVEN', unproven } end
  waiting['until'], waiting.reset, waiting.founding = until_ms, known.reset or A.reset, call.founding
  if void then redis.call('DEL', K.proofs) end
  for field, value in pairs(waiting) do redis.call('HSET', K.proofs, field, value) end
  redis.call('PEXPIRE', K.proofs, ms(2 * tonumber(call.session)))
  return { 'OK', 'waits', unproven }
end
for _, p in ipairs(placed) do
  note_ranges_of_owners(lost_by, p.keys.owners)
  if counts[p.topic] and not less(p.partition, counts[p.topic]) then counts[p.topic] = string.format('%d', p.partition + 1) end
end
-- Redis knows all members only if it is as new as the caller knows. Else the recovery lasts for its whole session.
local before = redis.call('HMGET', META, 'nonce', 'commit_seq')
local last = redis.call('ZRANGE', K.leases, -1, -1, 'WITHSCORES')[2]
local is_as_new = call.nonce ~= '' and call.nonce == before[1] and not less(before[2], call.seq)
local heard_of = is_as_new and last and latest_members(K.leases, last) or NOTHING
local session = longest_session()
if group_is_pinned() then redis.call('DEL', K.assignment) end
redis.call('DEL', K.proofs, K.leases, K.batches, K.leaving, K.applications, K.targets, K.working)
redis.call('HDEL', META, 'unheard')
if not is_as_new then redis.call('HDEL', META, 'alone') end  -- an older state may name an earlier application
if #heard_of > 0 then redis.call('HSET', META, 'unheard', table.concat(heard_of, ' ')) end
redis.call('HSET', META, 'reset_epoch', newer and A.reset or reset)
redis.call('HSETNX', META, 'commit_seq', '0')
redis.call('HSETNX', META, 'founding', call.founding ~= '' and call.founding or A.nonce)
redis.call('HSET', META, 'schema', SCHEMA, 'nonce', A.nonce, 'run_id', run_id(), 'epochs', '0',
  'recovering_until', ms(now_ms() + session), 'session_ms', ms(session), 'longest_ms', call.longest)
if not survived then keep() end
for _, p in ipairs(placed) do
  redis.call('DEL', p.keys.owners)
  -- New partitions are not in the record, so that `create_positions` places them.
  if p.count then redis.call('HSET', K.topics, p.topic, p.id .. ' ' .. (counts[p.topic] or p.count)) end
  write_progress(p.keys, p.partition, p.segments)
  if p.extent then redis.call('HSET', p.keys.epoch, p.partition, p.extent) end
  for _, key in ipairs({ p.keys.segments, p.keys.ics }) do expire_with_group(key) end
end
for i = 1, #A.growths, 2 do redis.call('HSETNX', K.growth, A.growths[i], A.growths[i + 1]) end
event(K.events, 'recover', A.why)
recover_policies(K.policy, K.events, A.policies, survived)
write_lost_events(K.events, lost_by, 'a loss of state makes every lane epoch void')
return reply()
