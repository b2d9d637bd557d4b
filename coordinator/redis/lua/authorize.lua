-- Returns the parts of a batch's lanes that the member still owns at their lane epochs (rule: authorize-every-batch).
-- Renews the lease. Starts the clock of the batch.
-- A.reset: reset epoch of the offset, A.digest: of the offset; the member's hash keeps it,
-- A.replayed: whether this process did not plan the batch, and its tasks may end slices early,
-- A.as_planned: whether to seal it at its planned ends, unless an earlier life has authorised it,
-- A.ids: topic -> id, A.lanes: "lo-hi epoch;..." of each partition, or "lo-hi epoch 120-159,171-240;..." in a group without
--   order
-- Reply owned: a line for each partition in the form of the call, or "all" if the member owns all lanes of the call
--   sealed: 1 if an earlier life sealed the batch, else ""   seal: its early ends
--   planned: 1 if A.as_planned, and the batch has a seal now, else ""
--   unknown: 1 if Redis does not know whether an earlier life sealed it, else "" (rule: unknown-is-beginning)
--   | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses arguments, damage, leases, names, prelude, progress, slices
local bad = lost() or before_reset(A.reset) or fenced(K.member) or recovering() or other_policy(K.member)
if bad then return bad end
check_ids()
local verdicts, ids, current = {}, {}, redis.call('HGET', META, 'reset_epoch') == A.reset
if differs_from_group(K.member, 'alone') then current = false end  -- a standby again: another application reads alone by now

local function owned_of(lanes, owners_key, valid)  -- the owned parts of lanes, and whether these are all
  local held, all = {}, true
  for _, piece in ipairs(overlay(lanes, ranges_at(owners_key, OWNER))) do
    local epoch, member = owner(piece.right and piece.right.value)
    if valid and member == call.member and epoch == piece.left.a then
      held[#held + 1] = piece.lo .. '-' .. piece.hi .. ' ' .. epoch .. ';'
    else
      all = false
    end
  end
  return held, all
end

local function slices_of(lanes, owners_key, valid)  -- the same in a group without order
  local held, all, slices = {}, true, slices_at(handed_key(owners_key))
  for _, lane in ipairs(lanes) do
    local mine, rest = held_of(offsets_of(lane.b), valid and slices or NOTHING, lane.a)
    all = all and #rest == 0 and lane.b ~= ''  -- a lane without slices is of the time before the ordering changed
    if #mine > 0 then
      held[#held + 1] = lane.lo .. '-' .. lane.hi .. ' ' .. lane.a .. ' ' .. string.gsub(text_of(united(mine)), ' ', ',') .. ';'
    end
  end
  return held, all
end

for i, keys in ipairs(K.partitions) do
  local topic, _, id = place_of(keys.owners)
  ids[topic] = ids[topic] or string.match(redis.call('HGET', K.topics, topic) or '', '^(%S+)') or ''
  local find = is_without_order() and slices_of or owned_of
  local held, all = find(from_text(A.lanes[i]), keys.owners, current and ids[topic] == id)
  verdicts[#verdicts + 1] = all and 'all' or table.concat(held)
end
local before = redis.call('HMGET', K.member, 'authorized', 'seal')
local same, digest = before[1] == A.digest, string.find(before[1] or '', '^%x+$')
local unknown = A.replayed and not digest and before[1] ~= 'none'  -- and stays so for the next life; none: no life authorised a batch
local seal = same and before[2]
local planned = A.as_planned and (seal or not same)
if planned and not seal then
  redis.call('HSET', K.member, 'seal', '')
elseif not same then
  redis.call('HDEL', K.member, 'seal')
end
redis.call('HSET', K.member, 'authorized', unknown and 'unknown' or A.digest)
local reads_alone = table.concat(A.lanes) ~= '' and redis.call('HEXISTS', K.member, 'alone') == 1
if reads_alone then redis.call('HSET', K.member, 'returns', 'true') end  -- an empty batch has read nothing
redis.call('ZADD', K.batches, ms(now_ms() + tonumber(call.longest)), call.member)
renew(K.leases)
return reply('owned', table.concat(verdicts, '\n'), 'sealed', seal and '1' or '',
  'seal', seal or '', 'planned', planned and '1' or '', 'unknown', unknown and '1' or '')
