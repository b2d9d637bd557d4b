-- Strikes of slices whose record may be too slow or may crash a task.
-- Uses damage, events, names, prelude

-- Strikes slices that a lost member's tasks had not ended, once for each loss (rule: strike-needs-evidence).
-- If one record on trial is struck again, the script parks it and removes the strikes around it. A lost lease is a
-- weaker sign than a batch that hangs, and takes one strike more (rule: parked-until-released).
local function strike(working_key, strikes, events, member, hung)
  local slices, text = {}, redis.call('HGET', working_key, member) or ''
  for tp, lo, hi, start, stop, one in string.gmatch(text, '(%S+ %d+) (%x+)-(%x+) (%d+)-(%d+)([^;]*);') do
    local whole = #lo == 16 and #hi == 16 and lo <= hi and hi < '8'  -- a hint: a damaged entry strikes no slice
    local some = less(start, stop) and #stop < 20 and not less(OFFSET_MAX, stop)
    if whole and some then
      slices[#slices + 1] = { tp = tp, lo = lo, hi = hi, start = start, stop = stop, one = one == ' one' }
    end
  end
  local known = redis.call('HGETALL', strikes)
  for _, s in ipairs(slices) do
    local count, name, around = 1, s.tp .. ' ' .. s.lo .. '-' .. s.hi, {}
    for i = 1, #known, 2 do
      local tp, lo, hi = string.match(known[i], '^(%S+ %d+) (%x+)-(%x+)$')
      local before, start, stop = string.match(known[i + 1], '^%a+ (%d+) (%d+)-(%d+) ')
      check(tp and before, known[i] .. ' of ' .. strikes)
      local within = tp == s.tp and lo <= s.lo and s.hi <= hi and less(s.start, stop) and less(start, s.stop)
      if within then
        count = math.max(count, tonumber(before) + 1)
        around[#around + 1] = known[i]
      end
    end
    local kind = s.one and count > (hung and 1 or 2) and 'parked' or 'strike'
    local value = { kind == 'parked' and kind or 'struck', count, s.start .. '-' .. s.stop, ms(now_ms()), member }
    if kind == 'parked' then redis.call('HDEL', strikes, unpack(around)) end
    redis.call('HSET', strikes, name, table.concat(value, ' '))
    event(events, kind, name .. ' from offset ' .. s.start .. ': ' .. member .. ' did not end it; strike ' .. count)
  end
  redis.call('HDEL', working_key, member)
end

-- Removes strikes and failing records of topics that were created again: their offsets belong to other records now. If a log was only cut,
-- or an operator moved positions, parked lanes stay parked (rule: parked-until-released). The topics are those of A.places.
local function forgive_replaced()
  local replaced = {}
  for _, p in ipairs(A.places) do
    local known = string.match(redis.call('HGET', K.topics, p.topic) or '', '^%S+')
    if p.position ~= '-' and known and known ~= p.id then replaced[p.topic] = true end
  end
  if not next(replaced) then return end
  for _, key in ipairs({ K.strikes, K.failing }) do
    for _, name in ipairs(redis.call('HKEYS', key)) do
      if replaced[string.match(name, '^%S+')] then
        redis.call('HDEL', key, name)
        event(K.events, 'release', name .. ': its topic was created again')
      end
    end
  end
end
