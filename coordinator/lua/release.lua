-- Gives up ranges that were assigned to others, each only while its new owner is there to take it (spec 4.2).
-- KEYS meta leases member events batches leaving, then owners of each partition
-- ARGV[2..] "lo-hi new_owner;..." of each partition
-- Reply {OK, nonce, seq, number of ranges released} | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
local bad = lost() or recovering() or fenced(KEYS[3])
if bad then return bad end
local released = 0

local function waiting(member)
  return redis.call('SISMEMBER', KEYS[6], member) == 0 and not takeable(KEYS[2], KEYS[5], member)
end

for i = 2, #ARGV do
  local after = {}
  for _, piece in ipairs(overlay(from_hash(redis.call('HGETALL', KEYS[i + 5])), from_text(ARGV[i]))) do
    local _, member = owner(piece.left.value)
    if member == call.member and piece.right and waiting(piece.right.a) then
      released = released + 1
    else
      after[#after + 1] = { lo = piece.lo, hi = piece.hi, value = piece.left.value }
    end
  end
  replace(KEYS[i + 5], coalesce(after, {}))
end
if released > 0 then event(KEYS[4], 'release', released .. ' ranges, in order') end
return reply(released)
