-- An operator deletes a group: all its keys go together. Refused while a member's lease runs.
-- KEYS meta leases, then every other key of the group
-- Reply {OK, number of keys that there were} | BUSY member lease_end now
local live = busy(KEYS[2])
if live then return live end
local deleted = 0
for _, key in ipairs(KEYS) do deleted = deleted + redis.call('DEL', key) end
return { 'OK', deleted }
