-- Everything the invariants look at, in one answer.
-- KEYS meta stable assignment strikes policy growth failing, then segments owners of each partition, then ics of each, then handed of each, then stable of other topics, then standbys topics leaving leases batches
local BATCHES, LEASES, LEAVING, TOPICS = table.remove(KEYS), table.remove(KEYS), table.remove(KEYS), table.remove(KEYS)
local found = { redis.call('HMGET', KEYS[1], 'nonce', 'run_id', 'recovering_until', 'reset_epoch', 'filter', 'founding', 'generation'), }
for i = 2, #KEYS do found[i] = redis.call('HGETALL', KEYS[i]) end
local names, leaving = redis.call('HKEYS', TOPICS), redis.call('SMEMBERS', LEAVING)
for _, of_members in ipairs({ names, leaving }) do found[#found + 1] = of_members end
for _, key in ipairs({ LEASES, BATCHES }) do found[#found + 1] = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
return found
