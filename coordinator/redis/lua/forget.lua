-- Deletes the state of topics that no member has subscribed to for the longest retention (KIP-211, rule: topic-expiry).
-- A member counts while its lease runs. Marks a topic when it finds no subscriber, and removes the mark when it finds one.
-- A.names: of members with a lease, A.topics: to forget, A.placed: the topic of each partition that has keys
-- Reply forgotten: names of the deleted topics | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses damage, events, leases, names, prelude
local bad = lost() or fenced(K.member) or recovering()
if bad then return bad end
local key_of, subscribed, forgotten, now = {}, {}, {}, now_ms()
for i, member in ipairs(A.names) do key_of[member] = K.members[i].member end

local complete = true  -- the topics of each live member are known: it may have joined since the caller looked
for _, member in ipairs(redis.call('ZRANGE', K.leases, 0, -1)) do
  if tonumber(end_of_lease(K.leases, member)) >= now then
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

for i, topic in ipairs(A.topics) do
  if redis.call('HEXISTS', K.topics, topic) == 1 and over(topic) then
    for _, key in pairs(K.of_topics[i]) do redis.call('DEL', key) end
    for j, keys in ipairs(K.partitions) do
      for _, key in pairs(A.placed[j] == topic and keys or {}) do redis.call('DEL', key) end
    end
    redis.call('HDEL', META, unsubscribed(topic), partitions_seen(topic))
    redis.call('HDEL', K.topics, topic)
    delete_fields(K.strikes, topic)
    delete_fields(K.growth, topic)
    delete_fields(K.failing, topic)
    event(K.events, 'forget', topic .. ': no member has subscribed to it for offsetsRetention')
    forgotten[#forgotten + 1] = topic
  end
end
renew(K.leases)
return reply('forgotten', forgotten)
