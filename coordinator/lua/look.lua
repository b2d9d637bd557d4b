-- What a member should own, and whether a new assignment is due. Renews the lease.
-- KEYS meta leases member batches leaving topics assignment targets
-- Reply {OK, nonce, seq, lease end, generation, JSON of the member's ranges or "", occasion if an assignment is due or "",
--   working members, AvailableNow's targets of the working members if this one has any}
--   | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
local bad = lost() or recovering() or fenced(KEYS[3])
if bad then return bad end
local lease_end = ms(renew(KEYS[2]))
local now_due, members = occasion({ leases = KEYS[2], batches = KEYS[4], leaving = KEYS[5], topics = KEYS[6] })
local made_for = redis.call('HGET', META, 'occasion')
local mine = redis.call('HGET', KEYS[7], call.member) or ''
local due = now_due ~= made_for and #members > 0
local targets = {}
if redis.call('HEXISTS', KEYS[8], call.member) == 1 then
  for _, other in ipairs(members) do targets[#targets + 1] = redis.call('HGET', KEYS[8], other) or '' end
end
return reply(lease_end, redis.call('HGET', META, 'generation') or '0', mine, due and now_due or '', due and members or {},
  table.concat(targets))
