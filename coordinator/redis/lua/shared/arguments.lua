-- Checks arguments of a verb: they may come from a damaged or forged checkpoint. Each verb checks all of its arguments
-- before it writes anything (rule: check-then-write). It refuses texts that it could not read again. The bounds are
-- those of `coordinator/values/identifiers.py`. An error that begins with ARGUMENT becomes an error about the checkpoint.
-- Uses damage
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

-- "topic id partition lanes" -> its four parts
local function lanes_of_argument(text)
  local topic, id, partition, lanes = string.match(text, '^([%w._-]+) ([%w._-]+) (%d+) (.*)$')
  require_argument(topic and number(partition), 'lanes', text)
  return topic, id, partition, lanes
end

-- "topic id count partition position" in ARGV from `first` on -> {topic, id, count, partition, position}, by index
local function positions_of_arguments(first)
  local places = {}
  for i = first, #ARGV do
    local topic, id, count, partition, position = string.match(ARGV[i], '^([%w._-]+) ([%w._-]+) (%d+) (%d+) (%S+)$')
    local right = topic and number(count) and number(partition) and tonumber(partition) < tonumber(count)
    require_argument(right and (position == '-' or is_position(position)), 'position', ARGV[i])
    places[i] = { topic, id, count, partition, position }
  end
  return places
end
