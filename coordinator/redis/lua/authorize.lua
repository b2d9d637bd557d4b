-- Returns the parts of a batch's lanes that the member still owns at their lane epochs (rule: authorize-every-batch).
-- Renews the lease. Starts the clock of the batch.
-- KEYS meta leases member topics batches, then owners of each partition
-- ARGV[2] reset epoch of the offset, ARGV[3] digest of the offset; the member's hash keeps it,
--   ARGV[4..] "topic id lo-hi epoch;..." of each partition
-- Reply owned: a line for each partition: "lo-hi epoch;...", or "all" if the member owns all lanes of the call
--   | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses arguments, damage, leases, prelude
local bad = lost() or before_reset(ARGV[2]) or recovering() or fenced(KEYS[3])
if bad then return bad end
local verdicts, ids, current = {}, {}, redis.call('HGET', META, 'reset_epoch') == ARGV[2]
for i = 4, #ARGV do
  local topic, id, lanes = string.match(ARGV[i], '^([%w._-]+) ([%w._-]+) (.*)$')
  require_argument(topic, 'lanes', ARGV[i])
  ids[topic] = ids[topic] or string.match(redis.call('HGET', KEYS[4], topic) or '', '^(%S+)') or ''
  local held, all = {}, true
  for _, piece in ipairs(overlay(from_text(lanes), ranges_at(KEYS[i + 2], OWNER))) do
    local epoch, member = owner(piece.right and piece.right.value)
    if current and ids[topic] == id and member == call.member and epoch == piece.left.a then
      held[#held + 1] = piece.lo .. '-' .. piece.hi .. ' ' .. epoch .. ';'
    else
      all = false
    end
  end
  verdicts[#verdicts + 1] = all and 'all' or table.concat(held)
end
redis.call('HSET', KEYS[3], 'authorized', ARGV[3])
redis.call('ZADD', KEYS[5], ms(now_ms() + tonumber(call.longest)), call.member)
renew(KEYS[2])
return reply('owned', table.concat(verdicts, '\n'))
