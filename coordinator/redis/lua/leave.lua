-- A member leaves. Its ranges without an unconfirmed slice are free at once. Its other ranges wait for the end of its
-- lease, which the script brings forward unless tasks may read on (rule: leave-keeps-unconfirmed). A member that leaves
-- is no lost one: the slices that its tasks had begun are no evidence (rule: strike-needs-evidence).
-- KEYS meta leases member events batches leaving targets standbys working, then owners of each partition
-- ARGV[2] ms until the end of the lease ("" to keep it), ARGV[3] who may still write, for the event,
--   ARGV[4..] "lo-hi ;..." unconfirmed of each partition
-- Reply kept: number of ranges, without order of partitions | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses events, leases, names, ownership, prelude, slices
local bad = lost() or fenced(KEYS[3])
if bad then return bad end
local wait, writers = table.remove(ARGV, 2), table.remove(ARGV, 2)
local kept, dropped = 0, {}
for i = 2, is_without_order() and #ARGV or 1 do
  if ARGV[i] ~= '' then kept = kept + 1 end  -- its slices wait for the end of the lease
  for _, s in ipairs(ARGV[i] == '' and slices_at(handed_key(KEYS[i + 8])) or {}) do
    if s[5] == call.member then dropped[#dropped + 1] = { handed_key(KEYS[i + 8]), s[3] } end
  end
end
local its_end = end_of_lease(KEYS[2], call.member)
local freed = free_ranges(8, function(unconfirmed)
  if unconfirmed then kept = kept + 1 end
  return not unconfirmed
end)
for _, field in ipairs(dropped) do redis.call('HDEL', field[1], field[2]) end
if kept == 0 then
  redis.call('ZREM', KEYS[2], call.member)
  redis.call('DEL', KEYS[3])
  redis.call('SREM', KEYS[6], call.member)
else
  redis.call('SADD', KEYS[6], call.member)
  if wait ~= '' and its_end then
    redis.call('ZADD', KEYS[2], ms(math.min(tonumber(its_end), now_ms() + tonumber(wait))), call.member)
  end
end
redis.call('ZREM', KEYS[5], call.member)
redis.call('HDEL', KEYS[7], call.member)
redis.call('HDEL', KEYS[8], call.member)
redis.call('HDEL', KEYS[9], call.member)
if #freed > 0 then event(KEYS[4], 'revoked', 'released in order: the member leaves', ranges_text(freed)) end
event(KEYS[4], 'leave', kept == 0 and 'all its batches are confirmed' or 'unconfirmed ranges wait for the end of the lease: ' .. writers)
return reply('kept', kept)
