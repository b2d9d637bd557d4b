-- Put before every verb. KEYS[1] is the group's meta, ARGV[1] a JSON object:
--   now     ms, "" for Redis TIME        nonce, seq  what the caller last saw ("" if nothing)
--   member, incarnation                  who calls ("" if nobody)
-- A verb replies {verdict, ...}. Numbers stay text: a double is exact to 2^53 only.
local call = cjson.decode(ARGV[1])
local META = KEYS[1]

local function less(a, b)  -- decimal texts without leading zeros
  return #a < #b or (#a == #b and a < b)
end

local function now_ms()
  if call.now ~= '' then return tonumber(call.now) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function ms(number) return string.format('%.0f', number) end

local function step(hash, by)  -- the hash (16 hex digits) before (-1) or after (1) this one
  local high, low = tonumber(string.sub(hash, 1, 8), 16), tonumber(string.sub(hash, 9), 16) + by
  if low < 0 then high, low = high - 1, 4294967295 end
  if low > 4294967295 then high, low = high + 1, 0 end
  return string.format('%08x%08x', high, low)
end

local function ascending(ranges)
  table.sort(ranges, function(a, b) return a.lo < b.lo end)
  return ranges
end

-- {"lo-hi", value, ...} as HGETALL gives it -> ranges {lo, hi, value}, ascending
local function from_hash(flat)
  local ranges = {}
  for i = 1, #flat, 2 do
    ranges[#ranges + 1] = { lo = string.sub(flat[i], 1, 16), hi = string.sub(flat[i], 18), value = flat[i + 1] }
  end
  return ascending(ranges)
end

-- "lo-hi a b;lo-hi a b;" -> ranges {lo, hi, a, b}, ascending
local function from_text(text)
  local ranges = {}
  for lo, hi, a, b in string.gmatch(text, '(%x+)%-(%x+) ([^%s;]*) ?([^%s;]*);') do
    ranges[#ranges + 1] = { lo = lo, hi = hi, a = a, b = b }
  end
  return ascending(ranges)
end

-- Cuts `left` where `right` begins and ends: pieces {lo, hi, left, right or nil}. Both ascend and are disjoint.
local function overlay(left, right)
  local pieces, j = {}, 1
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

local function expire_with_group(key)  -- the whole group expires at one moment
  local left = redis.call('PTTL', META)
  if left > 0 then redis.call('PEXPIRE', key, left) end
end

local function replace(key, ranges)  -- the whole hash at `key`
  redis.call('DEL', key)
  for i = 1, #ranges, 500 do
    local flat = {}
    for k = i, math.min(i + 499, #ranges) do
      flat[#flat + 1] = ranges[k].lo .. '-' .. ranges[k].hi
      flat[#flat + 1] = ranges[k].value
    end
    redis.call('HSET', key, unpack(flat))
  end
  expire_with_group(key)
end

-- Neighbours with one value become one range; each `lo` in `kept` stays the beginning of one.
local function coalesce(ranges, kept)
  local merged = {}
  for _, r in ipairs(ranges) do
    local last = merged[#merged]
    if last and last.value == r.value and step(last.hi, 1) == r.lo and not kept[r.lo] then
      last.hi = r.hi
    else
      merged[#merged + 1] = { lo = r.lo, hi = r.hi, value = r.value }
    end
  end
  return merged
end

-- Raises positions to those of `facts` {lo, hi, position}, never lowers one; writes segments and stable offset.
local function raise(keys, partition, facts)
  local boundaries, raised, stable = {}, {}, nil
  for _, o in ipairs(from_hash(redis.call('HGETALL', keys.owners))) do
    boundaries[o.lo], boundaries[step(o.hi, 1)] = true, true
  end
  for _, piece in ipairs(overlay(from_hash(redis.call('HGETALL', keys.segments)), facts)) do
    local position = piece.left.value
    if piece.right and less(position, piece.right.position) then position = piece.right.position end
    if not stable or less(position, stable) then stable = position end
    raised[#raised + 1] = { lo = piece.lo, hi = piece.hi, value = position }
  end
  replace(keys.segments, coalesce(raised, boundaries))
  if stable then redis.call('HSET', keys.stable, partition, stable) end
end

-- "<nonce>.<counter> <member>" -> lane epoch, member; nothing where the nonce is an older one: its epochs are void
local function owner(value)
  local nonce, counter, member = string.match(value or '', '^(%x+)%.(%d+) (%S+)$')
  if nonce == redis.call('HGET', META, 'nonce') then return nonce .. '.' .. counter, member end
end

local function run_id() return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') end

-- What every verb asks before anything else. nil: go on; else the verdict.
local function lost()
  local m = redis.call('HMGET', META, 'nonce', 'run_id', 'commit_seq', 'schema')
  if not m[1] then return { 'ABSENT' } end
  if m[4] ~= '1' then return { 'SCHEMA', m[4] or '' } end
  if m[2] ~= run_id() then return { 'LOST', 'another Redis server, or one that was restarted, answers' } end
  if call.nonce == m[1] and less(m[3], call.seq) then return { 'LOST', 'Redis went back to an earlier state' } end
  return nil
end

local function recovering()
  local until_ms = redis.call('HGET', META, 'recovering_until')
  if until_ms and now_ms() < tonumber(until_ms) then return { 'RECOVERING', until_ms, redis.call('HGET', META, 'nonce') } end
  return nil
end

-- The member's own fence: it has joined since the last loss, and no other life of it has since.
local function fenced(member_key)
  if call.nonce ~= redis.call('HGET', META, 'nonce') then return { 'REJOIN' } end
  if redis.call('HGET', member_key, 'incarnation') ~= call.incarnation then return { 'FENCED' } end
  return nil
end

-- R6: a member whose ranges others may take: its lease is over, or its batch hangs.
local function takeable(leases, batches, member)
  local lease_end, hung_at = redis.call('ZSCORE', leases, member), redis.call('ZSCORE', batches, member)
  local now = now_ms()
  return not lease_end or tonumber(lease_end) < now or (hung_at and tonumber(hung_at) < now)
end

-- Members that an assignment counts on, ascending: their ranges are not takeable and they do not leave.
local function working(leases, batches, leaving)
  local members = {}
  for _, member in ipairs(redis.call('ZRANGE', leases, 0, -1)) do
    if redis.call('SISMEMBER', leaving, member) == 0 and not takeable(leases, batches, member) then
      members[#members + 1] = member
    end
  end
  table.sort(members)
  return members
end

-- What an assignment is made for: the working members as they last joined, and the topics with their partitions.
local function occasion(keys)
  local topics, flat = {}, redis.call('HGETALL', keys.topics)
  for i = 1, #flat, 2 do topics[#topics + 1] = flat[i] .. ' ' .. flat[i + 1] end
  table.sort(topics)
  local members = working(keys.leases, keys.batches, keys.leaving)
  local lives = redis.call('HMGET', META, 'nonce', 'joins')
  local text = { lives[1], lives[2] or '0', table.concat(members, ' '), table.concat(topics, ';') }
  return redis.sha1hex(table.concat(text, ';')), members
end

local function renew(leases)  -- the new lease end
  local lease_end = now_ms() + tonumber(call.session)
  redis.call('ZADD', leases, ms(lease_end), call.member)
  return lease_end
end

local function reply(...)
  local seq = redis.call('HINCRBY', META, 'commit_seq', 1)
  redis.call('HSET', META, 'updated_at', ms(now_ms()))
  return { 'OK', redis.call('HGET', META, 'nonce'), tostring(seq), ... }
end

local function event(key, kind, why)
  redis.call('XADD', key, 'MAXLEN', '~', 1000, '*', 'event', kind, 'member', call.member, 'why', why)
end
