-- Creates a group.
-- Uses damage, events, names, prelude

-- The first key of the call that holds something of the group; nil without one. Events do not count: they outlive it.
local function remains()
  check_kinds()
  for _, key in ipairs(EVERY_KEY) do
    if key ~= K.events and redis.call('EXISTS', key) == 1 then return key end
  end
  return nil
end

-- The first nonce of a group is its founding (rule: one-founding).
local function create_group(nonce, why)
  redis.call('HSET', META, 'schema', SCHEMA, 'nonce', nonce, 'founding', nonce, 'run_id', run_id(), 'commit_seq', '0',
    'reset_epoch', '0', 'epochs', '0', 'created_at', ms(now_ms()))
  event(K.events, 'found', why)
  keep()
end
