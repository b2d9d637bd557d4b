-- A member leaves. Its ranges without an unconfirmed slice are free at once, its other ranges when the lease ends
-- (rule: leave-keeps-unconfirmed).
-- KEYS meta leases member events batches leaving targets standbys, then owners of each partition
-- ARGV[2..] "lo-hi ;..." unconfirmed of each partition
-- Reply kept: number of ranges, without order of partitions | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses events, ownership, prelude, slices
local bad = lost() or fenced(KEYS[3])
if bad then return bad end
local kept, dropped = 0, {}
for i = 2, is_without_order() and #ARGV or 1 do
  if ARGV[i] ~= '' then kept = kept + 1 end  -- its slices wait for the end of the lease
  for _, s in ipairs(ARGV[i] == '' and slices_at(handed_key(KEYS[i + 7])) or {}) do
    if s[5] == call.member then dropped[#dropped + 1] = { handed_key(KEYS[i + 7]), s[3] } end
  end
end
local freed = free_ranges(7, function(unconfirmed)
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
end
redis.call('ZREM', KEYS[5], call.member)
redis.call('HDEL', KEYS[7], call.member)
redis.call('HDEL', KEYS[8], call.member)
if #freed > 0 then event(KEYS[4], 'revoked', 'released in order: the member leaves', ranges_text(freed)) end
event(KEYS[4], 'leave', kept == 0 and 'all its batches are confirmed' or 'unconfirmed ranges wait for the end of the lease')
return reply('kept', kept)
