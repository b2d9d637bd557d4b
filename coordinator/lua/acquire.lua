-- Takes wanted hash ranges that nobody owns or whose owner's lease is over, each at a new lane epoch, and keeps
-- what the member owns already (spec 4.2, R6). Cuts the segments where ownership changes.
-- KEYS meta leases member events topics batches, then owners segments ics of each partition
-- ARGV[2..] "lo-hi ;..." wanted of each partition
-- Reply {OK, nonce, seq, lease end, reset_epoch, topics, [{"lo-hi epoch;...", segments, ics} of each partition]}
--   | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
local bad = lost() or recovering() or fenced(KEYS[3])
if bad then return bad end
local epoch, found = nil, {}

local function new_owner()
  if not epoch then epoch = call.nonce .. '.' .. redis.call('HINCRBY', META, 'epochs', 1) end
  return epoch .. ' ' .. call.member
end

local function acquire(owners_key, segments_key, wanted)
  local owners = from_hash(redis.call('HGETALL', owners_key))
  local after = {}
  for _, piece in ipairs(overlay(wanted, owners)) do
    local value = piece.right and piece.right.value
    local _, member = owner(value)
    if not member or (member ~= call.member and takeable(KEYS[2], KEYS[6], member)) then value = new_owner() end
    after[#after + 1] = { lo = piece.lo, hi = piece.hi, value = value }
  end
  for _, piece in ipairs(overlay(owners, wanted)) do
    if not piece.right then after[#after + 1] = { lo = piece.lo, hi = piece.hi, value = piece.left.value } end
  end
  after = coalesce(ascending(after), {})
  local segments = {}
  for _, piece in ipairs(overlay(from_hash(redis.call('HGETALL', segments_key)), after)) do
    segments[#segments + 1] = { lo = piece.lo, hi = piece.hi, value = piece.left.value }
  end
  if #segments == 0 then return '' end
  replace(owners_key, after)
  replace(segments_key, segments)
  local mine = {}
  for _, o in ipairs(after) do
    local e, member = owner(o.value)
    if member == call.member then mine[#mine + 1] = o.lo .. '-' .. o.hi .. ' ' .. e .. ';' end
  end
  return table.concat(mine)
end

for i = 2, #ARGV do
  local owners_key, segments_key, ics_key = KEYS[3 * i + 1], KEYS[3 * i + 2], KEYS[3 * i + 3]
  local mine = acquire(owners_key, segments_key, from_text(ARGV[i]))
  found[#found + 1] = { mine, redis.call('HGETALL', segments_key), redis.call('HGETALL', ics_key) }
end
if epoch then event(KEYS[4], 'acquire', 'lane epoch ' .. epoch) end
return reply(ms(renew(KEYS[2])), redis.call('HGET', META, 'reset_epoch'), redis.call('HGETALL', KEYS[5]), found)
