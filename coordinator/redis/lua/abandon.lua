-- Frees ranges of the caller at their lane epochs, since a batch leaves them out. Then no commit of the batch covers
-- them, not even by a next life that knows only its checkpoint (rule: omit-what-was-skipped).
-- KEYS meta member events, then owners of each partition
-- ARGV[2..] "lo-hi epoch;..." of each partition
-- Reply {OK, nonce, seq} | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
local bad = lost() or recovering() or fenced(KEYS[2])
if bad then return bad end
local ranges, left = {}, {}
for i = 2, #ARGV do
  local after = {}
  for _, piece in ipairs(overlay(ranges_at(KEYS[i + 2], OWNER), from_text(ARGV[i]))) do
    local epoch, member = owner(piece.left.value)
    if piece.right and member == call.member and epoch == piece.right.a then
      note(ranges, KEYS[i + 2], piece.lo, piece.hi)
    else
      after[#after + 1] = { lo = piece.lo, hi = piece.hi, value = piece.left.value }
    end
  end
  left[#left + 1] = { KEYS[i + 2], coalesce(after, {}) }
end
for _, hash in ipairs(left) do replace(hash[1], hash[2]) end
if #ranges > 0 then event(KEYS[3], 'revoked', 'left out of a batch: members died or hung over it', told(ranges)) end
return reply()
