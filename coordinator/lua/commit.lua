-- Moves positions of lanes whose batch the sink completed, as far as they are still owned at their lane epoch;
-- the rest is refused, neither blocks the other (spec 4.2, Fence). Cumulative and idempotent.
-- KEYS meta leases member topics batches, then owners segments stable of each partition
-- ARGV[2] reset epoch of the offset, ARGV[3..] "topic id partition lo-hi epoch position;..." of each partition
-- Reply {OK, nonce, seq, lease end, [refused "lo-hi epoch position;..." of each partition]}
--   | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
local bad = lost() or recovering() or fenced(KEYS[3])
if bad then return bad end
local refusals, current = {}, redis.call('HGET', META, 'reset_epoch') == ARGV[2]
for i = 3, #ARGV do
  local topic, id, partition, lanes = string.match(ARGV[i], '^(%S+) (%S+) (%S+) (.*)$')
  local known = string.match(redis.call('HGET', KEYS[4], topic) or '', '^(%S+)')
  local keys = { owners = KEYS[3 * i - 3], segments = KEYS[3 * i - 2], stable = KEYS[3 * i - 1] }
  local facts, refused = {}, {}
  for _, piece in ipairs(overlay(from_text(lanes), from_hash(redis.call('HGETALL', keys.owners)))) do
    local epoch, member = owner(piece.right and piece.right.value)
    if current and known == id and member == call.member and epoch == piece.left.a then
      facts[#facts + 1] = { lo = piece.lo, hi = piece.hi, position = piece.left.b }
    else
      refused[#refused + 1] = piece.lo .. '-' .. piece.hi .. ' ' .. piece.left.a .. ' ' .. piece.left.b .. ';'
    end
  end
  if #facts > 0 then raise(keys, partition, facts) end
  refusals[#refusals + 1] = table.concat(refused)
end
redis.call('ZREM', KEYS[5], call.member)
return reply(ms(renew(KEYS[2])), refusals)
