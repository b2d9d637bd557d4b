"""Members that share a partition by offsets; and clocks, settings, expiry (docs/protocol.md#without-order)."""

from typing import cast

from coordinator.redis.keys import GroupKeys
from store_world import SESSION, TP, World

ON_EACH_SERVER = True
AT_ONE_MOMENT = """
local times = redis.call('TIME')
for _, key in ipairs(KEYS) do times[#times + 1] = redis.call('PTTL', key) end
return times
"""
ABSENT = -2  # PTTL of a missing key


def test_group_expiry__all_keys_expire_at_one_moment_after_the_lease(world: World) -> None:
    """Rule: group-expiry.

    Heartbeats push the expiry of all keys to one moment: lease end plus the longest `offsetsRetention` of the
    members (KIP-211).
    """
    me = world.owner()
    world.store.positions.report_ends({TP: 9}, {})
    world.store.members.heartbeat(me)
    named = GroupKeys(world.group)
    keys = [*named.all([TP]), named.member("m-1")]
    seconds, microseconds, *left = cast(list[int], world.redis.eval(AT_ONE_MOMENT, len(keys), *keys))
    moments = {ms + int(seconds) * 1000 + int(microseconds) // 1000 for ms in left if ms != ABSENT}
    assert max(moments) - min(moments) <= 1, "a millisecond begins between the clock and the key's own"
    assert world.now + SESSION + 60_000 - 1 <= max(moments) <= world.now + SESSION + 60_000 + 1
