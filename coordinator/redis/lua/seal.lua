-- Adds true ends of a batch to its seal: of all its tasks before the last one ends, or of each task before it ends
-- (rule: seal-before-sink). A repeated seal changes nothing: the first ends of each task count.
-- With it go the failing records at which some hashes end (rule: defer-is-an-end). A record whose hash another member owns
-- by now is not stored: it could replace a record of that member.
-- KEYS meta leases member failing events, then owners of each partition in ARGV[4]
-- ARGV[2] digest of the batch, ARGV[3] "topic partition lo-hi offset;..." early ends,
--   ARGV[4] "topic partition;..." partitions of the failing records, ARGV[5] the longest delay of the caller's policy in ms,
--   ARGV[6..] field value ... of each record
-- Reply sealed: 1, or "" if the member authorised another batch last. If Redis lost that with the group, and the member
--   has joined again since, the lane epochs of the batch are void: nothing is stored, and sealed is 1 | REJOIN | FENCED | ABSENT | LOST | SCHEMA
-- Uses arguments, damage, events, failing, leases, names, prelude
local bad = lost() or fenced(KEYS[3])
if bad then return bad end
local read = 1
for from, topic, partition, hashes, offset, past in string.gmatch(ARGV[3], '()(%S+) (%S+) (%S+) ([^%s;]+);()') do
  local sound = from == read and string.find(topic, NAME) and number(partition) and hashes_of(hashes).sound
  require_argument(sound and is_position(offset), 'ends', ARGV[3])
  read = past
end
require_argument(read == #ARGV[3] + 1, 'ends', ARGV[3])

local latest = now_ms() + tonumber(ARGV[5])
local function tried_by_then(value)  -- the clock of the task's host may be ahead (rule: clock-ahead)
  local before, at, after = string.match(value, '^(%a+ %d+ %d+ )(%d+)( .*)$')
  return tonumber(at) > latest and before .. ms(latest) .. after or value
end

local records = {}  -- by partition: {lo, hi, field, value}
for i = 6, #ARGV, 2 do
  local tp, hash = failing_key(ARGV[i])
  require_argument(tp and failing_of(ARGV[i + 1]), 'failing record', ARGV[i])
  records[tp] = records[tp] or {}
  table.insert(records[tp], { lo = hash, hi = hash, field = ARGV[i], value = tried_by_then(ARGV[i + 1]) })
end

local stored, news = {}, { deferred = {}, parked = {} }  -- `news`: the fields that were not so before
local next_key = 6
for tp in string.gmatch(ARGV[4], '([^;]+);') do
  for _, piece in ipairs(overlay(ascending(records[tp] or {}), ranges_at(KEYS[next_key], OWNER))) do
    local _, member = owner(piece.right and piece.right.value)
    if member == call.member then
      local r = piece.left
      stored[#stored + 1], stored[#stored + 2] = r.field, r.value
      local word, offset = failing_of(r.value)
      if failing_of(redis.call('HGET', KEYS[4], r.field) or '') ~= word then
        table.insert(news[word], r.field .. ' at offset ' .. offset)
      end
    end
  end
  next_key = next_key + 1
end

local function about(names) return #names .. (#names == 1 and ' key' or ' keys') .. ' whose record failed: ' .. names[1] end

local before = redis.call('HMGET', KEYS[3], 'authorized', 'seal')
local same, seal = before[1] == ARGV[2], before[2] or ''
if same and not (before[2] and string.find(';' .. seal, ';' .. ARGV[3], 1, true)) then
  redis.call('HSET', KEYS[3], 'seal', seal .. ARGV[3])
  fill(KEYS[4], stored)
  if #news.deferred > 0 then event(KEYS[5], 'deferred', about(news.deferred)) end
  if #news.parked > 0 then event(KEYS[5], 'parked', about(news.parked)) end
end
renew(KEYS[2])
return reply('sealed', (same or before[1] == 'none') and '1' or '')
