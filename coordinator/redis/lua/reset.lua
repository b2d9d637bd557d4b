-- Resets the group to an operator's positions, at a new reset epoch and a new nonce. So all lane epochs, incarnations and
-- leases become void (rule: reset-epoch). Refused while a member's lease runs. The caller has written the mirror before.
-- KEYS meta leases topics events batches leaving applications targets assignment strikes
--   failing, then owners segments ics reserved stable of each partition that the group has positions of
-- ARGV[2] new nonce, ARGV[3] new reset epoch, ARGV[4] the reset epoch in force when the operator planned, ARGV[5] why,
--   ARGV[6..] "topic id count partition position" of each partition, "-" where positions stay
-- Reply OK | BUSY member lease_end now | SUPERSEDED reset epoch in force | RECOVERING | ABSENT | LOST | SCHEMA
-- Uses arguments, events, leases, names, ownership, prelude, strikes
local bad, whole, places = lost(), true, positions_of_arguments(6)
check_reset(ARGV[3])
for i = 6, #ARGV do whole = whole and string.match(ARGV[i], '(%S+)$') ~= '-' end
-- If the reset moves every position, a loss of old positions does not matter.
if bad and not (whole and bad[1] == 'LOST') then return bad end
if not whole and recovering() then return recovering() end
local live = busy(KEYS[2])
if live then return live end
local reset_in_force = redis.call('HGET', META, 'reset_epoch') or '0'
if reset_in_force ~= ARGV[4] then return { 'SUPERSEDED', reset_in_force } end
local lost_by = {}
for i = 6, #ARGV do note_ranges_of_owners(lost_by, KEYS[5 * i - 18]) end
redis.call('DEL', KEYS[2], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9])
redis.call('HDEL', META, 'recovering_until', 'unheard', 'occasion')
redis.call('HSET', META, 'nonce', ARGV[2], 'epochs', '0', 'reset_epoch', ARGV[3], 'run_id', run_id())
forgive_replaced(KEYS[3], KEYS[10], KEYS[11], KEYS[4], 6)
for i = 6, #ARGV do
  local topic, id, count, partition, position = unpack(places[i])
  local k = 5 * i - 18
  redis.call('DEL', KEYS[k])
  if position ~= '-' then
    redis.call('HSET', KEYS[3], topic, id .. ' ' .. count)
    redis.call('DEL', KEYS[k + 2], KEYS[k + 3])
    replace(KEYS[k + 1], { { lo = '0000000000000000', hi = '7fffffffffffffff', value = position } })
    redis.call('HSET', KEYS[k + 4], partition, position)
  end
end
event(KEYS[4], 'reset', ARGV[5])
write_lost_events(KEYS[4], lost_by, 'a reset makes every lane epoch void')
return reply()
