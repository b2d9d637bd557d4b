-- A member leaves: ranges without an unconfirmed slice are free at once, the others when the lease ends
-- (rule: leave-keeps-unconfirmed).
-- KEYS meta leases member events batches leaving targets, then owners of each partition
-- ARGV[2..] "lo-hi ;..." unconfirmed of each partition
-- Reply {OK, nonce, seq, number of ranges kept} | REJOIN | FENCED | ABSENT | LOST | SCHEMA
local bad = lost() or fenced(KEYS[3])
if bad then return bad end
local kept, freed, left = 0, {}, {}
for i = 2, #ARGV do
  local after = {}
  for _, piece in ipairs(overlay(ranges_at(KEYS[i + 6], OWNER), from_text(ARGV[i]))) do
    local _, member = owner(piece.left.value)
    if member ~= call.member or piece.right then
      after[#after + 1] = { lo = piece.lo, hi = piece.hi, value = piece.left.value }
      if member == call.member then kept = kept + 1 end
    else
      note(freed, KEYS[i + 6], piece.lo, piece.hi)
    end
  end
  left[#left + 1] = { KEYS[i + 6], coalesce(after, {}) }
end
for _, hash in ipairs(left) do replace(hash[1], hash[2]) end
if kept == 0 then
  redis.call('ZREM', KEYS[2], call.member)
  redis.call('DEL', KEYS[3])
  redis.call('SREM', KEYS[6], call.member)
else
  redis.call('SADD', KEYS[6], call.member)
end
redis.call('ZREM', KEYS[5], call.member)
redis.call('HDEL', KEYS[7], call.member)
if #freed > 0 then event(KEYS[4], 'revoked', 'released in order: the member leaves', told(freed)) end
event(KEYS[4], 'leave', kept == 0 and 'all its batches are confirmed' or 'unconfirmed ranges wait for the end of the lease')
return reply(kept)
