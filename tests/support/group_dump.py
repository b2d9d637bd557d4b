"""All that Redis holds of a group, for tests that nothing of it may change."""

from typing import Any, cast

from coordinator.redis.keys import GroupKeys, encode

BEATS = ("updated_at", "commit_seq", "computing", "computing_member", "computing_until")  # of `meta`: no state
DUMP = """
local read = { hash = 'HGETALL', set = 'SMEMBERS', string = 'GET', stream = 'XLEN' }
local found = {}
for i, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key)['ok']
  found[i] = read[kind] and redis.call(read[kind], key) or redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
end
return found
"""


def dump(server: Any, group: str) -> dict[str, object]:
    """Every key of the group with all that it holds, but for heartbeats in `meta`."""
    names = sorted(server.scan_iter(f"coop:v1:{{{encode(group)}}}:*"))
    found = dict(zip(names, cast(list[object], server.eval(DUMP, len(names), *names)), strict=True))
    meta = cast(list[str], found[GroupKeys(group).meta])
    found[GroupKeys(group).meta] = {k: v for k, v in zip(meta[::2], meta[1::2], strict=True) if k not in BEATS}
    return found
