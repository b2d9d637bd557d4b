-- Frees ranges that are assigned to other members, each only while its new owner works
-- (rule: release-to-a-waiting-owner).
-- KEYS meta leases member events batches leaving, then owners of each partition
-- ARGV[2..] "lo-hi new_owner;..." of each partition
-- Reply {OK, nonce, seq, number of ranges released} | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
local bad = lost() or recovering() or fenced(KEYS[3])
if bad then return bad end
local released, ranges, left = 0, {}, {}

local function waiting(member)
  return redis.call('SISMEMBER', KEYS[6], member) == 0 and not takeable(KEYS[2], KEYS[5], member)
end

for i = 2, #ARGV do
  local after = {}
  for _, piece in ipairs(overlay(ranges_at(KEYS[i + 5], OWNER), from_text(ARGV[i]))) do
    local _, member = owner(piece.left.value)
    if member == call.member and piece.right and waiting(piece.right.a) then
      released = released + 1
      note(ranges, KEYS[i + 5], piece.lo, piece.hi)
    else
      after[#after + 1] = { lo = piece.lo, hi = piece.hi, value = piece.left.value }
    end
  end
  left[#left + 1] = { KEYS[i + 5], coalesce(after, {}) }
end
for _, hash in ipairs(left) do replace(hash[1], hash[2]) end
if released > 0 then event(KEYS[4], 'revoked', 'released in order', told(ranges)) end
return reply(released)
