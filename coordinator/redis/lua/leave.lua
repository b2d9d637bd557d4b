-- A member leaves. Its ranges without an unconfirmed slice are free at once. Its other ranges wait for the end of its
-- lease, which the script brings forward unless tasks may read on (rule: leave-keeps-unconfirmed). A member that leaves
-- is no lost one: the slices that its tasks had begun are no evidence, unless its batch hangs (rule: strike-needs-evidence).
-- A.within_ms: ms until the end of the lease, nil to keep it, A.writers: who may still write, for the event,
-- A.ranges: "lo-hi ;..." unconfirmed of each partition
-- Reply kept: number of ranges, without order of partitions | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses events, leases, names, ownership, prelude, slices, strikes
local bad = lost() or fenced(K.member)
if bad then return bad end
local kept, dropped = 0, {}
for i, unconfirmed in ipairs(is_without_order() and A.ranges or {}) do
  if unconfirmed ~= '' then kept = kept + 1 end  -- its slices wait for the end of the lease
  local key = handed_key(K.partitions[i].owners)
  for _, s in ipairs(unconfirmed == '' and slices_at(key) or {}) do
    if s[5] == call.member then dropped[#dropped + 1] = { key, s[3] } end
  end
end
local its_end = end_of_lease(K.leases, call.member)
local freed = free_ranges(function(unconfirmed)
  if unconfirmed then kept = kept + 1 end
  return not unconfirmed
end)
for _, field in ipairs(dropped) do redis.call('HDEL', field[1], field[2]) end
if kept == 0 then
  redis.call('ZREM', K.leases, call.member)
  redis.call('DEL', K.member)
  redis.call('SREM', K.leaving, call.member)
else
  redis.call('SADD', K.leaving, call.member)
  if A.within_ms and its_end then
    redis.call('ZADD', K.leases, ms(math.min(tonumber(its_end), now_ms() + tonumber(A.within_ms))), call.member)
  end
end
if hangs(K.batches, call.member) then strike(K.working, K.strikes, K.events, call.member, true) end
redis.call('ZREM', K.batches, call.member)
redis.call('HDEL', K.targets, call.member)
redis.call('HDEL', K.standbys, call.member)
redis.call('HDEL', K.working, call.member)
if #freed > 0 then event(K.events, 'revoked', 'released in order: the member leaves', ranges_text(freed)) end
event(K.events, 'leave', kept == 0 and 'all its batches are confirmed' or 'unconfirmed ranges wait for the end of the lease: ' .. A.writers)
return reply('kept', kept)
