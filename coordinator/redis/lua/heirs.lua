-- Returns the other members that should own the ranges of the call, and no other ranges (rule: owner-reads-own-segments).
-- Writes nothing.
-- KEYS meta assignment
-- ARGV[2..] "topic partition lo-hi ;..." of each partition
-- Reply heirs: ["lo-hi member;..." of each partition] | ABSENT | LOST | SCHEMA
-- Uses prelude
local bad = lost()
if bad then return bad end
local assigned, flat, answers = {}, redis.call('HGETALL', KEYS[2]), {}
for i = 1, #flat, 2 do assigned[flat[i]] = cjson.decode(flat[i + 1]) end

local function assigned_ranges(topic, partition)
  local ranges = {}
  for member, topics in pairs(assigned) do
    for _, hashes in ipairs((topics[topic] or {})[partition] or {}) do
      ranges[#ranges + 1] = { lo = string.sub(hashes, 1, 16), hi = string.sub(hashes, 18), member = member }
    end
  end
  return ascending(ranges)
end

for i = 2, #ARGV do
  local topic, partition, ranges = string.match(ARGV[i], '^(%S+) (%d+) (.*)$')
  local heirs = {}
  for _, piece in ipairs(overlay(from_text(ranges), assigned_ranges(topic, partition))) do
    if piece.right and piece.right.member ~= call.member then
      heirs[#heirs + 1] = piece.lo .. '-' .. piece.hi .. ' ' .. piece.right.member .. ';'
    end
  end
  answers[#answers + 1] = table.concat(heirs)
end
local m = redis.call('HMGET', META, 'nonce', 'commit_seq')
return reply_as_of(m[1], m[2], 'heirs', answers)
