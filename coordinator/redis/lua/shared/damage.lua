-- Checks all state that a verb reads before the verb writes anything (rule: check-then-write). An operator may have
-- damaged keys of the group by hand. The error names the key.
-- Uses names
local KINDS = {  -- all others are hashes
  leases = 'zset', batches = 'zset', leaving = 'set', events = 'stream', history = 'stream',
}
local READ_FIRST = { segments = true, owners = true, ics = true, reserved = true, handed = true }  -- reading one fails if its kind is wrong
local NUMBERS = { 'commit_seq', 'reset_epoch', 'epochs', 'joins', 'generation', 'recovering_until', 'computing_until',
  'duplicate_commits', 'session_ms', 'longest_ms', 'retention_ms', 'grace_ms', 'heard_at' }
local OFFSET, OWNER = '^%d+$', '^%x+%.%d+ %S+$'
local OFFSET_MAX = '9223372036854775807'

local function check(right, what)
  if not right then error(what .. ' is damaged') end
end

local function number(text)  -- in the form that `less` compares, at most OFFSET_MAX
  return string.find(text, OFFSET) and not string.find(text, '^0%d') and (#text < 19 or (#text == 19 and text <= OFFSET_MAX))
end

local PARTITIONS_MAX = 100000  -- of a topic; progress/growth.py has it too

-- "<topic id> <partition count>" of a topic -> id, count; nil if `text` is nil.
local function check_topic(text, topic, key)
  if not text then return nil end
  local id, count = string.match(text, '^(%S+) ([1-9]%d*)$')
  local fits = count and #count <= 6 and tonumber(count) <= PARTITIONS_MAX
  check(fits, topic .. ' of ' .. key .. ' (a topic id and 1 to ' .. PARTITIONS_MAX .. ' partitions)')
  return id, count
end

local fixed = {}  -- the keys that `check_kinds` has read, each once
local function check_kinds(every)  -- READ_FIRST too if `every`
  local seen = {}  -- thousands of partitions name the same keys of their topic
  for _, key in ipairs(EVERY_KEY) do
    local name = string.match(key, '}:(%a+)') or ''
    if (every or not READ_FIRST[name]) and not seen[key] then
      local kind = redis.call('TYPE', key)['ok']
      check(kind == 'none' or kind == (KINDS[name] or 'hash'), key .. ', a ' .. kind .. ',')
      seen[key] = true
      fixed[#fixed + 1] = key
    end
  end
end

local ORDERINGS = { key = true, partition = true, none = true }

local function is_nonce(text)  -- in a form that checkpoints and the mirror can hold
  return text and #text <= 64 and string.find(text, '^[0-9a-f]+$')
end

local function check_meta()
  local nonce, founding, ordering = unpack(redis.call('HMGET', META, 'nonce', 'founding', 'ordering'))
  check(is_nonce(nonce), 'nonce of ' .. META)
  check(is_nonce(founding), 'founding of ' .. META)
  check(ORDERINGS[ordering or 'key'], 'ordering of ' .. META)
  for i, value in ipairs(redis.call('HMGET', META, unpack(NUMBERS))) do
    local optional = i > 3  -- `create_positions` writes only the first three
    check((not value and optional) or (value and #value < 19 and number(value)), NUMBERS[i] .. ' of ' .. META)
  end
end

local fields = {}  -- a cache: most partitions have the same cuts
local function hashes_of(field)  -- "lo-hi" -> {lo, hi, sound}
  local known = fields[field]
  if known then return known end
  local lo, hi = string.sub(field, 1, 16), string.sub(field, 18)
  local hex = #hi == 16 and string.sub(field, 17, 17) == '-' and not string.find(lo .. hi, '[^0-9a-f]')
  known = { lo = lo, hi = hi, sound = hex and lo <= hi and hi < '8' }
  fields[field] = known
  return known
end

-- {"lo-hi", value, ...} as of HGETALL of `key`; `pattern` is the form of each value.
local function check_ranges(ranges, key, pattern)
  local last
  for _, r in ipairs(ranges) do
    local sound = r.sound and not (last and r.lo <= last)
    local right
    if pattern == OFFSET then right = number(r.value) else right = string.find(r.value, pattern) end
    if not (sound and right) then  -- builds texts only for damage: a text for each range is slow
      check(sound, r.lo .. '-' .. r.hi .. ' of ' .. key)
      check(string.find(r.value, pattern), 'the entry ' .. r.lo .. '-' .. r.hi .. ' of ' .. key)
      check(right, 'position ' .. r.value .. ' of ' .. key)
    end
    last = r.hi
  end
  return ranges
end
