-- Deletes the state of topics that no member has subscribed to for the longest retention (KIP-211, rule: topic-expiry).
-- A member counts while its lease runs. Marks a topic when it finds no subscriber, and removes the mark when it finds one.
-- KEYS meta leases member topics events strikes growth failing, then the hash of each member in ARGV[2], then the keys of each topic
-- ARGV[2] "member ..." with a lease, ARGV[3..] "topic number-of-its-keys" of each topic
-- Reply forgotten: names of the deleted topics | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses damage, events, leases, names, prelude
local bad = lost() or fenced(KEYS[3]) or recovering()
if bad then return bad end
local key_of, subscribed, forgotten, now, next_key = {}, {}, {}, now_ms(), 9
for member in string.gmatch(ARGV[2], '%S+') do key_of[member], next_key = KEYS[next_key], next_key + 1 end

local complete = true  -- the topics of each live member are known: it may have joined since the caller looked
for _, member in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  if tonumber(end_of_lease(KEYS[2], member)) >= now then
    local topics = key_of[member] and redis.call('HGET', key_of[member], 'topics')
    for topic in string.gmatch(topics or '', '[^,]+') do subscribed[topic] = true end
    complete = complete and topics
  end
end

local function over(topic)  -- whether its retention is over; else it keeps, makes or removes the mark
  local mark = unsubscribed(topic)
  if subscribed[topic] then redis.call('HDEL', META, mark) end
  if subscribed[topic] or not complete then return false end
  local since = redis.call('HGET', META, mark)
  local sound = since and number(since) and #since < 16 and tonumber(since) <= now
  if not sound then redis.call('HSET', META, mark, ms(now)) end
  return sound and now - tonumber(since) >= longest('retention')
end

local function delete_fields(key, topic)  -- of a hash whose fields begin with a topic
  for _, name in ipairs(redis.call('HKEYS', key)) do
    if string.match(name, '^%S+') == topic then redis.call('HDEL', key, name) end
  end
end

for i = 3, #ARGV do
  local topic, keys = string.match(ARGV[i], '^(%S+) (%d+)$')
  local first = next_key
  next_key = first + tonumber(keys)
  if redis.call('HEXISTS', KEYS[4], topic) == 1 and over(topic) then
    for k = first, next_key - 1 do redis.call('DEL', KEYS[k]) end
    redis.call('HDEL', META, unsubscribed(topic), partitions_seen(topic))
    redis.call('HDEL', KEYS[4], topic)
    delete_fields(KEYS[6], topic)
    delete_fields(KEYS[7], topic)
    delete_fields(KEYS[8], topic)
    event(KEYS[5], 'forget', topic .. ': no member has subscribed to it for offsets.retention.minutes')
    forgotten[#forgotten + 1] = topic
  end
end
renew(KEYS[2])
return reply('forgotten', forgotten)
