-- Adds true ends of a batch to its seal: of all its tasks before the last one ends, or of each task before it ends
-- (rule: seal-before-sink). A repeated seal changes nothing: the first ends of each task count.
-- With it go the failing records at which some hashes end (rule: defer-is-an-end). A record whose hash another member owns
-- by now is not stored: it could replace a record of that member.
-- A.digest: of the batch, A.ends: "topic partition lo-hi offset;...", the early ones,
-- A.records: field, value, ... of each failing record, A.where: "topic partition" of each partition of these,
-- A.delay_ms: the longest delay of the caller's policy
-- Reply sealed: 1, or "" if the member authorised another batch last. If Redis lost that with the group, and the member
--   has joined again since, the lane epochs of the batch are void: nothing is stored, and sealed is 1 | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses arguments, damage, events, failing, leases, names, prelude
local bad = lost() or fenced(K.member)
if bad then return bad end
local read = 1
for from, topic, partition, hashes, offset, past in string.gmatch(A.ends, '()(%S+) (%S+) (%S+) ([^%s;]+);()') do
  local sound = from == read and string.find(topic, NAME) and number(partition) and hashes_of(hashes).sound
  require_argument(sound and is_position(offset), 'ends', A.ends)
  read = past
end
require_argument(read == #A.ends + 1, 'ends', A.ends)

local latest = now_ms() + tonumber(A.delay_ms)
local function tried_by_then(value)  -- the clock of the task's host may be ahead (rule: clock-ahead)
  local before, at, after = string.match(value, '^(%a+ %d+ %d+ )(%d+)( .*)$')
  return tonumber(at) > latest and before .. ms(latest) .. after or value
end

local records = {}  -- by partition: {lo, hi, field, value}
for i = 1, #A.records, 2 do
  local field, value = A.records[i], A.records[i + 1]
  local tp, hash = failing_key(field)
  require_argument(tp and failing_of(value), 'failing record', field)
  records[tp] = records[tp] or {}
  table.insert(records[tp], { lo = hash, hi = hash, field = field, value = tried_by_then(value) })
end

local stored, news = {}, { deferred = {}, parked = {} }  -- `news`: the fields that were not so before
for i, tp in ipairs(A.where) do
  for _, piece in ipairs(overlay(ascending(records[tp] or {}), ranges_at(K.partitions[i].owners, OWNER))) do
    local _, member = owner(piece.right and piece.right.value)
    if member == call.member then
      local r = piece.left
      stored[#stored + 1], stored[#stored + 2] = r.field, r.value
      local word, offset = failing_of(r.value)
      if failing_of(redis.call('HGET', K.failing, r.field) or '') ~= word then
        table.insert(news[word], r.field .. ' at offset ' .. offset)
      end
    end
  end
end

local function about(names) return #names .. (#names == 1 and ' key' or ' keys') .. ' whose record failed: ' .. names[1] end

local before = redis.call('HMGET', K.member, 'authorized', 'seal')
local same, seal = before[1] == A.digest, before[2] or ''
if same and not (before[2] and string.find(';' .. seal, ';' .. A.ends, 1, true)) then
  redis.call('HSET', K.member, 'seal', seal .. A.ends)
  fill(K.failing, stored)
  if #news.deferred > 0 then event(K.events, 'deferred', about(news.deferred)) end
  if #news.parked > 0 then event(K.events, 'parked', about(news.parked)) end
end
renew(K.leases)
return reply('sealed', (same or before[1] == 'none') and '1' or '')
