-- Keys and arguments by name, as coordinator/redis/verb.py sends them: the only file that knows their order.
--   K  keys: K.leases, and K.partitions[i].owners of a list; an item of a list of plain keys is the key itself
--   A  arguments: texts, truths, and lists and objects of these; nil if the caller has none. Numbers are texts
--   call  what each verb is told of its caller:
--     now     ms, "" for Redis TIME        nonce, seq  of the caller's last reply ("" if none)
--     founding  of the group that the caller knows ("" if it knows none)
--     session, longest, retention, grace   ms, options of the caller; `grace` is partitionGrowthGrace
--     member, incarnation                  of the caller ("" if it is no member)
--     number                               of this call among the member's ordered calls ("" if it is not ordered)
-- Uses no shared file
local asked = cjson.decode(ARGV[1])
local call = asked.call
local A, K, META, EVERY_KEY = asked.arguments, {}, KEYS[1], KEYS

local function bind(keys, lists)
  local next_key = 0
  local function take()
    next_key = next_key + 1
    return KEYS[next_key]
  end
  for _, name in ipairs(keys) do K[name] = take() end
  for _, list in ipairs(lists) do
    local items = {}
    for i = 1, list.count do
      local item = list.keys[1] and {} or take()
      for _, name in ipairs(list.keys) do item[name] = take() end
      items[i] = item
    end
    K[list.name] = items
  end
end
bind(asked.keys, asked.lists)

local function group_key(name) return string.sub(META, 1, -5) .. name end  -- one that the verb does not name
