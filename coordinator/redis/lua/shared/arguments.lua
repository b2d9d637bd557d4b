-- Checks arguments of a verb: they may come from a damaged or forged checkpoint. Each verb checks all of its arguments
-- before it writes anything (rule: check-then-write). It refuses texts that it could not read again. The bounds are
-- those of `coordinator/values/identifiers.py`. An error that begins with ARGUMENT becomes an error about the checkpoint.
-- Uses damage, names
local NAME = '^[%w._-]+$'
local RESET_DIGITS = 15

local function require_argument(right, what, text)
  if not right then error('ARGUMENT ' .. what .. ' ' .. string.sub(text, 1, 200)) end
end

local function check_call(caller)
  require_argument((caller.member or '') == '' or string.find(caller.member, NAME), 'member', caller.member)
end

local function check_reset(reset)
  require_argument(number(reset) and #reset <= RESET_DIGITS, 'reset epoch', reset)
end

local function is_position(text) return number(text) and text ~= OFFSET_MAX end

-- The topic and the partition of a key, and the id that A.ids has of this topic.
local function place_of(key)
  local topic, partition = string.match(key, '^coop:v1:{[^}]*}:%a+:([%w._-]+):(%d+)$')
  require_argument(topic and number(partition), 'topic', key)
  require_argument(string.find(A.ids[topic], NAME), 'topic id', A.ids[topic])
  return topic, partition, A.ids[topic]
end

-- Checks A.places: {topic, id, count, partition, position} of each partition, position "-" where there is none.
local function check_places()
  for _, p in ipairs(A.places) do
    local named = string.find(p.topic, NAME) and string.find(p.id, NAME)
    local right = named and number(p.count) and number(p.partition) and tonumber(p.partition) < tonumber(p.count)
    require_argument(right and (p.position == '-' or is_position(p.position)), 'position',
      table.concat({ p.topic, p.id, p.count, p.partition, p.position }, ' '))
  end
end
