-- Writes first positions of partitions that have none. Creates the group if it does not exist (rule: first-positions).
-- A topic with more partitions in Kafka than any caller has seen has grown. The script records the growth, once for the
-- group, whichever of its partitions the caller reads (rule: growth-order).
-- A.nonce: of a new group ("": do not create a group, rule: create-once),
-- A.grace_ms: partitionGrowthGrace of the caller: the longest of the members counts (rule: settings-that-differ),
-- A.counts: topic -> "<id> <number of its partitions in Kafka>" of all topics that the caller reads,
-- A.joined: topic -> "1" if it is joined: its new partitions waited
-- for those of other topics, so it may have grown in several steps (rule: joined-topics),
-- A.places: {topic, id, count, partition, position} of each partition
-- Reply placed: number of partitions with new positions | RECOVERING | ABSENT | LOST | SCHEMA
-- Uses arguments, damage, events, founding, leases, names, prelude
check_places()

local function first_positions()  -- "orders-0 at 5, orders-1 at 7", for an event: of ten partitions
  local shown = {}
  for i, p in ipairs(A.places) do shown[i] = p.topic .. '-' .. p.partition .. ' at ' .. p.position end
  return table.concat(shown, ', ', 1, math.min(#shown, 10)) .. (#shown > 10 and ', ...' or '')
end

if redis.call('EXISTS', META) == 1 then
  -- A caller that knows no founding proves nothing: members of before prove their positions first.
  local bad = lost() or (call.founding == '' and recovering())
  if bad then return bad end
elseif A.nonce == '' then
  return { 'ABSENT' }
else
  local left = remains()
  if left then return { 'LOST', META .. ' is gone, and ' .. left .. ' is not' } end  -- the group lost part of its state
  create_group(A.nonce, 'first positions of a new group: ' .. first_positions())
end
for _, p in ipairs(A.places) do
  local field = partitions_seen(p.topic)
  require_argument(check_topic(A.counts[p.topic], p.topic, 'the call'), 'counts', p.topic)
  check_topic(redis.call('HGET', META, field), field, META)
end
local placed = 0

local LATE_MS = 15000  -- members that look store the log ends of their topics every 10 s

-- Whether no member has looked at the topic shortly before: it may have grown in several steps since.
local function is_late(stable_key, now)
  local at = redis.call('HGET', (string.gsub(stable_key, ':stable:', ':end:', 1)), 'at')
  local gap = at and number(at) and now - tonumber(at)
  return not gap or gap < 0 or gap > LATE_MS
end

local function grew(topic, id, old, new, stable_key)
  local now, kept = now_ms(), 'key order across it is kept'
  local late, may_have_steps = A.joined[topic] or is_late(stable_key, now), tonumber(new) > tonumber(old) + 1
  if may_have_steps then kept = kept .. ' if it did not grow twice within seconds' end
  if may_have_steps and late then
    kept = 'seen late, so some keys may be out of order unless it was one step, or steps to multiples'
  end
  if tonumber(new) % tonumber(old) ~= 0 then
    kept = 'not a multiple, so keys that moved between older partitions may be out of order'
  end
  local grace = math.max(tonumber(A.grace_ms), tonumber(redis.call('HGET', META, 'grace_ms') or 0))
  if grace == 0 then kept = 'partitionGrowthGrace is 0, so key order across it is not kept' end
  local seen = (late and '~' or '') .. ms(now)
  redis.call('HSET', K.growth, topic .. ' ' .. old .. ' ' .. new, id .. ' ' .. seen .. ' ' .. ms(now + grace))
  event(K.events, 'growth', topic .. ': ' .. old .. ' -> ' .. new .. ' partitions; ' .. kept)
end

-- Records a growth since the largest number of partitions that a caller has seen. Without that number, as after a loss of
-- state, the recorded partitions are all that there were, if the caller reads all that there are.
local function look_at(topic, id, count, recorded, stable_key)
  local field, _, now = partitions_seen(topic), check_topic(A.counts[topic], topic, 'the call')
  local of, seen = check_topic(redis.call('HGET', META, field), field, META)
  if of ~= id then seen = recorded and now == count and recorded or nil end
  if seen and less(seen, now) then grew(topic, id, seen, now, stable_key) end
  if not seen or of ~= id or less(seen, now) then redis.call('HSET', META, field, id .. ' ' .. now) end
end

local before, looked, without_any = {}, {}, {}  -- topic -> its number of partitions before this call
for i, p in ipairs(A.places) do
  local topic, id, count, partition, position = p.topic, p.id, p.count, p.partition, p.position
  local segments, ics, stable = K.partitions[i].segments, K.partitions[i].ics, K.partitions[i].stable
  local known, partitions = check_topic(redis.call('HGET', K.topics, topic), topic, K.topics)
  before[topic] = before[topic] or partitions or '0'
  if without_any[topic] == nil then without_any[topic] = redis.call('EXISTS', stable) == 0 end
  if not known and redis.call('EXISTS', segments) == 1 then
    event(K.events, 'mend', 'topic ' .. topic .. ' was missing in Redis: it was written again, with ' .. count .. ' partitions')
  elseif known == id and less(partition, before[topic]) and redis.call('EXISTS', segments) == 0 then
    -- A reader of assigned partitions may add this one now, beside those that others have placed.
    local had = without_any[topic] or redis.call('HEXISTS', stable, partition) == 1
    if had then event(K.events, 'mend', topic .. '-' .. partition .. ' had no positions: it begins at ' .. position) end
  end
  if not looked[topic] and (known or id) == id then look_at(topic, id, count, partitions, stable) end
  known, partitions, looked[topic] = known or id, partitions or '0', true
  redis.call('HDEL', META, unsubscribed(topic))
  if known == id and less(partitions, count) then
    redis.call('HSET', K.topics, topic, id .. ' ' .. count)
  end
  -- A partition of the topic that Redis records, also if that was created again meanwhile: then `recreate` follows.
  if (known == id or less(partition, before[topic])) and redis.call('EXISTS', segments) == 0 then
    replace(segments, { { lo = '0000000000000000', hi = '7fffffffffffffff', value = position } })
    redis.call('HSET', stable, partition, position)
    redis.call('DEL', ics)
    placed = placed + 1
  end
end
-- No leader of these topics has answered yet. Their first positions may come after a growth, which is one nevertheless.
for topic, seen in pairs(recovering() and {} or A.counts) do
  if redis.call('HEXISTS', K.topics, topic) == 0 then redis.call('HSETNX', META, partitions_seen(topic), seen) end
end
return reply('placed', placed)
