-- Ranges, and the checks and replies of every verb.
-- A verb replies {'OK', name, value, name, value, ...} or {verdict, ...}. The comment of the verb has the names, except
-- nonce, seq and founding, which `reply` adds. Each verb that replies LOST may also reply {'REPLACED', founding}. Numbers stay text (rule: numbers-as-text).
-- Uses arguments, damage, names
local SCHEMA = '1'  -- of the layout of all keys; also in coordinator/redis/group_state.py
local COPIED = 'none: a copy was loaded'  -- in place of a run id
check_call(call)

local function less(a, b)  -- decimal texts without leading zeros
  return #a < #b or (#a == #b and a < b)
end

local function now_ms()
  if call.now ~= '' then return tonumber(call.now) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function ms(time) return string.format('%.0f', time) end

local neighbours = { [-1] = {}, [1] = {} }  -- a cache: most partitions have the same cuts
local function step(hash, by)  -- the hash (16 hex digits) before (-1) or after (1) this one
  local known = neighbours[by][hash]
  if known then return known end
  local high, low = tonumber(string.sub(hash, 1, 8), 16), tonumber(string.sub(hash, 9), 16) + by
  if low < 0 then high, low = high - 1, 4294967295 end
  if low > 4294967295 then high, low = high + 1, 0 end
  known = string.format('%08x%08x', high, low)
  neighbours[by][hash] = known
  return known
end

local function lower(a, b) return a.lo < b.lo end
local function ascending(ranges)
  if ranges[2] then table.sort(ranges, lower) end
  return ranges
end

-- {"lo-hi", value, ...} as of HGETALL -> ranges {lo, hi, value, sound}, ascending
local function from_hash(flat)
  local ranges = {}
  for i = 1, #flat, 2 do
    local h = hashes_of(flat[i])
    ranges[#ranges + 1] = { lo = h.lo, hi = h.hi, value = flat[i + 1], sound = h.sound }
  end
  return ascending(ranges)
end

-- "lo-hi a b;lo-hi a b;" -> ranges {lo, hi, a, b}, ascending
local function from_text(text)
  local ranges, read, right, last = {}, 1, true, ''
  for from, hashes, a, b, past in string.gmatch(text, '()([%x-]+) ([^%s;]*) ?([^%s;]*);()') do
    local h = hashes_of(hashes)
    right = right and from == read and h.sound
    ranges[#ranges + 1], read = { lo = h.lo, hi = h.hi, a = a, b = b }, past
  end
  for _, r in ipairs(ascending(ranges)) do
    right, last = right and last < r.lo, r.hi
  end
  require_argument(right and read == #text + 1, 'lanes', text)
  return ranges
end

-- Cuts `left` at the ends of `right`: pieces {lo, hi, left, right or nil}. Both ascend and are disjoint.
local function overlay(left, right)
  local pieces, j, whole, same = {}, 1, left[1], right[1]
  if #left == 1 and (not same or (#right == 1 and whole.lo == same.lo and whole.hi == same.hi)) then  -- the most frequent case
    return { { lo = whole.lo, hi = whole.hi, left = whole, right = same } }
  end
  for _, l in ipairs(left) do
    local lo = l.lo
    while true do
      while right[j] and right[j].hi < lo do j = j + 1 end
      local r, hi = right[j], l.hi
      local over = r and r.lo <= lo and r or nil
      if over and over.hi < hi then hi = over.hi end
      if r and not over and r.lo <= hi then hi = step(r.lo, -1) end
      pieces[#pieces + 1] = { lo = lo, hi = hi, left = l, right = over }
      if hi == l.hi then break end
      lo = step(hi, 1)
    end
  end
  return pieces
end

local left_ms
local function expire_with_group(key)  -- the whole group expires at one moment
  left_ms = left_ms or redis.call('PTTL', META)
  if left_ms > 0 then redis.call('PEXPIRE', key, left_ms) end
end

-- Sets the first expiry of a group. Heartbeats push it later; a group without heartbeats expires too (KIP-211).
local function keep() redis.call('PEXPIREAT', META, ms(now_ms() + tonumber(call.session) + tonumber(call.retention))) end

-- Lets new keys of a verb expire with their group (rule: group-expiry). `replace` does so for keys of a partition.
local function expire_what_is_new()
  for _, key in ipairs(fixed) do
    if redis.call('PTTL', key) == -1 then expire_with_group(key) end
  end
end

-- The field of `meta` that holds the time since when no member subscribes to a topic (rule: topic-expiry).
local function unsubscribed(topic) return 'unsubscribed ' .. topic end

-- The field of `meta` that holds the largest number of partitions of a topic that a member has seen in Kafka, with its id.
local function partitions_seen(topic) return 'partitions ' .. topic end

local function fill(key, flat)  -- writes {field, value, ...} of any length to the hash at `key`
  for i = 1, #flat, 500 do redis.call('HSET', key, unpack(flat, i, math.min(i + 499, #flat))) end
end

local function set(key, ranges)  -- adds ranges to the hash at `key`
  local flat = {}
  for _, r in ipairs(ranges) do
    flat[#flat + 1] = r.lo .. '-' .. r.hi
    flat[#flat + 1] = r.value
  end
  fill(key, flat)
end

local function replace(key, ranges)  -- writes the whole hash at `key`
  redis.call('DEL', key)
  set(key, ranges)
  expire_with_group(key)
end

-- Joins neighbours that have the same value. A range that begins at a `lo` in `kept` stays separate from the one before.
local function coalesce(ranges, kept)
  local merged = {}
  for _, r in ipairs(ranges) do
    local last = merged[#merged]
    if last and last.value == r.value and step(last.hi, 1) == r.lo and not kept[r.lo] then
      last.hi = r.hi
    else
      merged[#merged + 1] = { lo = r.lo, hi = r.hi, value = r.value, first = r }
    end
  end
  return merged
end

-- "<nonce>.<counter> <member>" -> lane epoch, member; nil if the nonce is not in force: its lane epochs are void
local in_force
local owners = {}  -- a cache: one call acquires many partitions
local function owner(value)
  local known = owners[value or '']
  if not known then
    local epoch, nonce, member = string.match(value or '', '^((%x+)%.%d+) (%S+)$')
    in_force = in_force or redis.call('HGET', META, 'nonce')
    known = nonce == in_force and { epoch, member } or {}
    owners[value or ''] = known
  end
  return known[1], known[2]
end

local function run_id() return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') end

-- Returns a verdict if the state has another schema: no call overwrites it (rule: schema-number).
local function other_schema()
  local schema = redis.call('HGET', META, 'schema')
  if schema and schema ~= SCHEMA then return { 'SCHEMA', schema } end
  return nil
end

-- Each verb checks for a loss of state before anything else (rule: loss-of-state).
-- Returns the verdict; nil without a loss.
local function lost()
  local m = redis.call('HMGET', META, 'nonce', 'run_id', 'commit_seq', 'founding', 'schema')
  if not m[1] then return { 'ABSENT' } end
  if m[5] ~= SCHEMA then return { 'SCHEMA', m[5] or '' } end
  check_kinds()
  check_meta()
  -- Another group has this name by now. Nothing that the caller knows is of this one (rule: one-founding).
  if call.founding ~= '' and call.founding ~= m[4] then return { 'REPLACED', m[4] } end
  if m[2] == COPIED then return { 'LOST', 'an operator has loaded a copy of the group' } end
  if m[2] ~= run_id() then return { 'LOST', 'another Redis server, or one that was restarted, answers' } end
  if call.nonce == m[1] and less(m[3], call.seq) then return { 'LOST', 'Redis went back to an earlier state' } end
  return nil
end

-- The verdict for an owned range without positions: an operator deleted them.
local function positions_gone(segments_key)
  return { 'LOST', segments_key .. ' is gone' }
end

-- Returns a verdict if a fact has a newer reset epoch than Redis. Redis is from before an operator's reset then
-- (rule: reset-epoch).
local function before_reset(reset)
  check_reset(reset)
  if less(redis.call('HGET', META, 'reset_epoch') or '0', reset) then
    return { 'LOST', 'Redis went back to before a reset' }
  end
  return nil
end

-- The segments of a partition tile its hash space. Hashes in a hole would count as done (rule: exact-tiling).
local function check_tiling(segments, key)
  local lo = '0000000000000000'
  for _, s in ipairs(segments) do
    if s.lo ~= lo then check(false, 'a hole before ' .. s.lo .. '-' .. s.hi .. ': ' .. key) end
    lo = step(s.hi, 1)
  end
  if lo ~= '8000000000000000' then check(#segments == 0, 'a hole from ' .. lo .. ' on: ' .. key) end
end

-- Reads and checks a hash of ranges in Redis: {lo, hi, value}, ascending and disjoint.
local function ranges_at(key, pattern)
  local ranges = check_ranges(from_hash(redis.call('HGETALL', key)), key, pattern)
  if pattern == OFFSET then check_tiling(ranges, key) end
  return ranges
end

-- The fence of incarnations: the caller has joined since the last loss, and no other incarnation has joined later.
-- A call that arrives after a later one of the same member changes nothing (rule: numbered-calls).
-- To a call without a number, REJOIN means that its lane epochs are void: a task may end without its seal then.
local numbered
local function fenced(member_key)
  if call.nonce ~= redis.call('HGET', META, 'nonce') then return { 'REJOIN' } end
  local m = redis.call('HMGET', member_key, 'incarnation', 'called')
  if m[1] ~= call.incarnation then return { 'FENCED' } end
  if call.number ~= '' then
    if m[2] and less(call.number, m[2]) then return { 'REJOIN' } end
    numbered = member_key
  end
  return nil
end

local function differs_from_group(member_key, field)  -- whether the group has another value of it than the member
  return (redis.call('HGET', member_key, field) or '') ~= (redis.call('HGET', META, field) or '')
end

-- A member whose lease had ended gets no range and no batch if the group has another filter by now, or is read by another
-- application alone: it joins again (rule: one-filter, rule: one-application). It may still commit and seal the batch that
-- it reads, since it owns its ranges (rule: lease-end). A standby, also one that worked before, waits beside that application.
local function other_policy(member_key)
  local waits = redis.call('HGET', group_key('standbys'), call.member) == 'standby'
  local differs = differs_from_group(member_key, 'filter') or (differs_from_group(member_key, 'alone') and not waits)
  return differs and { 'REJOIN' } or nil
end

local function reply(...)  -- the reply of a verb that writes
  if numbered then redis.call('HSET', numbered, 'called', call.number) end
  local seq = redis.call('HINCRBY', META, 'commit_seq', 1)
  redis.call('HSET', META, 'updated_at', ms(now_ms()))
  local identity = redis.call('HMGET', META, 'nonce', 'founding')
  expire_what_is_new()
  return { 'OK', 'nonce', identity[1], 'seq', tostring(seq), 'founding', identity[2], ... }
end
