-- Says which parts of a batch's lanes are still owned at their lane epoch (R7); renews the lease, starts the batch's clock.
-- KEYS meta leases member topics batches, then owners of each partition
-- ARGV[2] reset epoch of the offset, ARGV[3..] "topic id lo-hi epoch;..." of each partition
-- Reply {OK, nonce, seq, lease end, ["lo-hi epoch;..." of each partition]} | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
local bad = lost() or recovering() or fenced(KEYS[3])
if bad then return bad end
local verdicts, current = {}, redis.call('HGET', META, 'reset_epoch') == ARGV[2]
for i = 3, #ARGV do
  local topic, id, lanes = string.match(ARGV[i], '^(%S+) (%S+) (.*)$')
  local known = string.match(redis.call('HGET', KEYS[4], topic) or '', '^(%S+)')
  local held = {}
  for _, piece in ipairs(overlay(from_text(lanes), from_hash(redis.call('HGETALL', KEYS[i + 3])))) do
    local epoch, member = owner(piece.right and piece.right.value)
    if current and known == id and member == call.member and epoch == piece.left.a then
      held[#held + 1] = piece.lo .. '-' .. piece.hi .. ' ' .. epoch .. ';'
    end
  end
  verdicts[#verdicts + 1] = table.concat(held)
end
redis.call('ZADD', KEYS[5], ms(now_ms() + tonumber(call.longest)), call.member)
expire_with_group(KEYS[5])
return reply(ms(renew(KEYS[2])), verdicts)
