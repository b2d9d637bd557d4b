-- Failing records: "topic partition hash" -> "deferred|parked <offset> <attempts> <ms> <error> <message>".
-- Uses damage

local function failing_of(value)  -- -> "deferred" or "parked", offset; nil if the value is damaged
  local word, offset, attempts, at = string.match(value, '^(%a+) (%d+) (%d+) (%d+) ')
  local sound = (word == 'deferred' or word == 'parked') and number(offset) and number(attempts) and number(at)
  if sound then return word, offset end
end

local function failing_key(field)  -- "topic partition hash" -> "topic partition", hash; nil if it is damaged
  local tp, hash = string.match(field, '^(%S+ %d+) (%x+)$')
  if tp and hashes_of(hash .. '-' .. hash).sound then return tp, hash end
end
