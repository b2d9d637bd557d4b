-- Everything the invariants look at, in one answer.
-- KEYS meta stable, then segments owners of each partition
local found = { redis.call('HMGET', KEYS[1], 'nonce', 'run_id', 'recovering_until', 'reset_epoch'), redis.call('HGETALL', KEYS[2]) }
for i = 3, #KEYS do found[i] = redis.call('HGETALL', KEYS[i]) end
return found
