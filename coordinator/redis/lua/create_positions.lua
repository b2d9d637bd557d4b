-- Writes first positions of partitions that have none. Creates the group if it does not exist (rule: first-positions).
-- A topic with more partitions than recorded has grown. The script records the growth, once for the group
-- (rule: growth-order).
-- KEYS meta topics events growth, then segments ics stable of each partition
-- ARGV[2] nonce of a new group ("": do not create a group, rule: create-once),
--   ARGV[3] partition.growth.grace of the caller in ms ("" if it reads assigned partitions and does not see a growth):
--   the longest of the members counts (rule: settings-that-differ),
--   ARGV[4..] "topic id count partition position" of each partition
-- Reply placed: number of partitions with new positions | RECOVERING | ABSENT | LOST | SCHEMA
-- Uses arguments, damage, events, founding, leases, prelude
local places = positions_of_arguments(4)

local function first_positions()  -- "orders-0 at 5, orders-1 at 7", for an event: of ten partitions
  local shown = {}
  for i = 4, math.min(#ARGV, 13) do
    local topic, _, _, partition, position = unpack(places[i])
    shown[#shown + 1] = topic .. '-' .. partition .. ' at ' .. position
  end
  return table.concat(shown, ', ') .. (#ARGV > 13 and ', ...' or '')
end

if redis.call('EXISTS', META) == 1 then
  -- A caller that knows no founding proves nothing: members of before prove their positions first.
  local bad = lost() or (call.founding == '' and recovering())
  if bad then return bad end
elseif ARGV[2] == '' then
  return { 'ABSENT' }
else
  local left = remains()
  if left then return { 'LOST', META .. ' is gone, and ' .. left .. ' is not' } end  -- the group lost part of its state
  create_group(ARGV[2], 'first positions of a new group: ' .. first_positions())
end
local placed = 0

local function grew(topic, id, old, new)
  local now, kept = now_ms(), 'key order across it is kept'
  if tonumber(new) % tonumber(old) ~= 0 then
    kept = 'not a multiple, so keys that moved between older partitions may be out of order'
  end
  local grace = math.max(tonumber(ARGV[3]), tonumber(redis.call('HGET', META, 'grace_ms') or 0))
  if grace == 0 then kept = 'partition.growth.grace is 0, so key order across it is not kept' end
  redis.call('HSET', KEYS[4], topic .. ' ' .. old .. ' ' .. new, id .. ' ' .. ms(now) .. ' ' .. ms(now + grace))
  event(KEYS[3], 'growth', topic .. ': ' .. old .. ' -> ' .. new .. ' partitions; ' .. kept)
end

local before = {}  -- topic -> its number of partitions before this call
for i = 4, #ARGV do
  local topic, id, count, partition, position = unpack(places[i])
  local segments, ics, stable = KEYS[3 * i - 7], KEYS[3 * i - 6], KEYS[3 * i - 5]
  local known, partitions = check_topic(redis.call('HGET', KEYS[2], topic), topic, KEYS[2])
  before[topic] = before[topic] or partitions or '0'
  if not known and redis.call('EXISTS', segments) == 1 then
    event(KEYS[3], 'mend', 'topic ' .. topic .. ' was missing in Redis: it was written again, with ' .. count .. ' partitions')
  elseif known == id and less(partition, before[topic]) and redis.call('EXISTS', segments) == 0 then
    -- A reader of whole topics placed all these partitions. A reader of assigned partitions may add this one now.
    local had = ARGV[3] ~= '' or redis.call('HEXISTS', stable, partition) == 1
    if had then event(KEYS[3], 'mend', topic .. '-' .. partition .. ' had no positions: it begins at ' .. position) end
  end
  known, partitions = known or id, partitions or '0'
  redis.call('HDEL', META, unsubscribed(topic))
  if known == id and less(partitions, count) then
    if partitions ~= '0' and ARGV[3] ~= '' then grew(topic, id, partitions, count) end
    redis.call('HSET', KEYS[2], topic, id .. ' ' .. count)
  end
  if known == id and redis.call('EXISTS', segments) == 0 then
    replace(segments, { { lo = '0000000000000000', hi = '7fffffffffffffff', value = position } })
    redis.call('HSET', stable, partition, position)
    redis.call('DEL', ics)
    placed = placed + 1
  end
end
return reply('placed', placed)
