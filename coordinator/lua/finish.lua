-- AvailableNow: whether every hash is at its target, whoever owned it; if so the member is leaving (spec 7).
-- KEYS meta leases member leaving, then segments of each partition
-- ARGV[2..] target of each partition
-- Reply {OK, nonce, seq, 1 or 0} | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
local bad = lost() or recovering() or fenced(KEYS[3])
if bad then return bad end
for i = 2, #ARGV do
  for _, position in ipairs(redis.call('HVALS', KEYS[i + 3])) do
    if less(position, ARGV[i]) then return reply(0) end
  end
end
redis.call('SADD', KEYS[4], call.member)
return reply(1)
