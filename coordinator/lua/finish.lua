-- AvailableNow: whether every hash is at its target, whoever owned it; if so the member is leaving (spec 7).
-- KEYS meta leases member, then segments of each partition
-- ARGV[2..] target of each partition
-- Reply {OK, nonce, seq, 1 or 0} | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
local bad = lost() or recovering() or fenced(KEYS[3])
if bad then return bad end
for i = 2, #ARGV do
  for _, position in ipairs(redis.call('HVALS', KEYS[i + 2])) do
    if less(position, ARGV[i]) then return reply(0) end
  end
end
redis.call('HSET', KEYS[3], 'leaving', '1')
return reply(1)
