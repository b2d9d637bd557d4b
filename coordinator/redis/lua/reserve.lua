-- Reserves offsets of a partition for a worker, or renews the reservation (rule: ordered-commit). Returns whether the
-- worker has its turn: all offsets before its own are done. Else returns the worker in the way. Drops ended reservations.
-- KEYS meta member reserved stable end
-- ARGV[2] partition, ARGV[3] worker, ARGV[4] "40-44" offsets, ARGV[5] held or parked, for people, ARGV[6] lease in ms,
--   ARGV[7] end of the caller's batch, "-" without a batch: then the log end is the end
-- Reply stable offset, turn: TURN | WAIT | ALONE | TAKEN | BEYOND, who: "worker 40-44" in the way or ""
--   ALONE: no worker holds the missing offsets; the script drops a parked reservation. TAKEN: another worker holds some
--   BEYOND: the caller's batch does not read the offsets from `who` on
--   | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses damage, leases, prelude, progress
local bad = lost() or recovering() or fenced(KEYS[2])
if bad then return bad end
local now, stable = now_ms(), redis.call('HGET', KEYS[4], ARGV[2]) or '0'
local mine, reserved = offsets_of(ARGV[4])[1], redis.call('HGETALL', KEYS[3])
local before, taken
local function turned(word, who) return reply('stable', stable, 'turn', word, 'who', who) end
local reach = ARGV[7] ~= '-' and ARGV[7] or redis.call('HGET', KEYS[5], ARGV[2]) or '0'
check(number(reach), ARGV[2] .. ' of ' .. KEYS[5])
if less(reach, mine[2]) and less(stable, mine[2]) then return turned('BEYOND', reach) end

for i = 1, #reserved, 2 do
  local theirs = offsets_of(reserved[i])[1]
  local worker, state, its_end, length = string.match(reserved[i + 1], '^(%S+) (%S+) until (%d+) for (%d+)$')
  its_end = cut_to(now + tonumber(length or 0), its_end, 'a reservation', function(at)
    redis.call('HSET', KEYS[3], reserved[i], worker .. ' ' .. state .. ' until ' .. at .. ' for ' .. length)
  end)
  if not worker or not less(stable, theirs[2]) or tonumber(its_end) < now then
    redis.call('HDEL', KEYS[3], reserved[i])
  elseif worker ~= ARGV[3] and less(theirs[1], mine[2]) then
    if less(mine[1], theirs[2]) then taken = worker .. ' ' .. reserved[i] else before = worker .. ' ' .. reserved[i] end
  end
end

if taken then return turned('TAKEN', taken) end
local turn = not less(stable, mine[1])
if ARGV[5] == 'parked' and not turn and not before then
  redis.call('HDEL', KEYS[3], ARGV[4])
else
  redis.call('HSET', KEYS[3], ARGV[4], ARGV[3] .. ' ' .. ARGV[5] .. ' until ' .. ms(now + tonumber(ARGV[6])) .. ' for ' .. ARGV[6])
  expire_with_group(KEYS[3])
end
return turned(turn and 'TURN' or (before and 'WAIT' or 'ALONE'), not turn and before or '')
