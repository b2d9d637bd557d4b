-- Resets the group to an operator's positions, at a new reset epoch and a new nonce. So all lane epochs, incarnations and
-- leases become void (rule: reset-epoch). Refused while a member's lease runs. The caller has written the mirror before.
-- A.nonce: the new one, A.epoch: the new reset epoch, A.since: the one in force when the operator planned, A.why: for the
-- event, A.places: {topic, id, count, partition, position} of each partition with positions, "-" where these stay
-- Reply OK | BUSY member lease_end now | SUPERSEDED reset epoch in force | RECOVERING | ABSENT | LOST | SCHEMA
-- Uses arguments, events, leases, names, ownership, prelude, strikes
local bad, whole = lost(), true
check_places()
check_reset(A.epoch)
for _, p in ipairs(A.places) do whole = whole and p.position ~= '-' end
-- If the reset moves every position, a loss of old positions does not matter.
if bad and not (whole and bad[1] == 'LOST') then return bad end
if not whole and recovering() then return recovering() end
local live = busy(K.leases)
if live then return live end
local reset_in_force = redis.call('HGET', META, 'reset_epoch') or '0'
if reset_in_force ~= A.since then return { 'SUPERSEDED', reset_in_force } end
local lost_by = {}
for _, keys in ipairs(K.partitions) do note_ranges_of_owners(lost_by, keys.owners) end
redis.call('DEL', K.leases, K.batches, K.leaving, K.applications, K.targets, K.assignment)
redis.call('HDEL', META, 'recovering_until', 'unheard', 'occasion')
redis.call('HSET', META, 'nonce', A.nonce, 'epochs', '0', 'reset_epoch', A.epoch, 'run_id', run_id())
forgive_replaced()
for i, p in ipairs(A.places) do
  local keys = K.partitions[i]
  redis.call('DEL', keys.owners)
  if p.position ~= '-' then
    redis.call('HSET', K.topics, p.topic, p.id .. ' ' .. p.count)
    redis.call('DEL', keys.ics, keys.reserved)
    replace(keys.segments, { { lo = '0000000000000000', hi = '7fffffffffffffff', value = p.position } })
    redis.call('HSET', keys.stable, p.partition, p.position)
  end
end
event(K.events, 'reset', A.why)
write_lost_events(K.events, lost_by, 'a reset makes every lane epoch void')
return reply()
