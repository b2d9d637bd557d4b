-- Frees the ranges of the call that are assigned to other members, if the new owner of a range works
-- (rule: release-to-a-waiting-owner). A pinned member frees them all: no other member may ever be assigned them.
-- A.ranges: "lo-hi ;..." of each partition
-- Reply released: number of ranges | RECOVERING | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses damage, events, leases, names, ownership, pinned, prelude
local bad = lost() or fenced(K.member) or recovering()
if bad then return bad end
grant_grace(K.leases)
local released, assigned, flat, pinned = 0, {}, redis.call('HGETALL', K.assignment), group_is_pinned()
for i = 1, #flat, 2 do assigned[flat[i]] = cjson.decode(flat[i + 1]) end
assigned[call.member] = nil

local function waiting(member)
  return redis.call('SISMEMBER', K.leaving, member) == 0 and not takeable(K.leases, K.batches, member)
end

local function cut_at_assigned_ranges(owners_key, ranges)
  local topic, partition = string.match(owners_key, ':owners:(.+):(%d+)$')
  local of_members = {}
  for member, topics in pairs(assigned) do
    for _, hashes in ipairs((topics[topic] or {})[partition] or {}) do
      local h = hashes_of(hashes)
      check(h.sound, hashes .. ' of ' .. K.assignment)
      of_members[#of_members + 1] = { lo = h.lo, hi = h.hi, member = member }
    end
  end
  return overlay(ranges, ascending(of_members))
end

local ranges = free_ranges(function(wanted)
  local yes = wanted and (pinned or wanted.right and waiting(wanted.right.member))
  if yes then released = released + 1 end
  return yes
end, cut_at_assigned_ranges)
if released > 0 then event(K.events, 'revoked', 'released in order', ranges_text(ranges)) end
renew(K.leases)
return reply('released', released)
