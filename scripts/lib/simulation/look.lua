-- Everything the invariants look at, in one answer.
-- KEYS meta stable assignment strikes policy growth failing, then segments owners of each partition, then ics of each, then handed of each, then stable of other topics, then leases
local found = { redis.call('HMGET', KEYS[1], 'nonce', 'run_id', 'recovering_until', 'reset_epoch', 'filter', 'founding'), }
local LEASES = table.remove(KEYS)
for i = 2, #KEYS do found[i] = redis.call('HGETALL', KEYS[i]) end
found[#found + 1] = redis.call('ZRANGE', LEASES, 0, -1, 'WITHSCORES')
return found
