"""Clocks, settings that differ, expiry, and events of ownership (docs/protocol.md#times-and-settings)."""

from typing import cast

from coordinator.progress.ownership import Owned
from coordinator.redis.events import last_events
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller, Joining
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Topic, TopicPartition
from store_world import FIELDS, LONGEST, LOWER, OTHER, SESSION, TP, UPPER, WANTED, World

ON_EACH_SERVER = True
AT_ONE_MOMENT = """
local times = redis.call('TIME')
for _, key in ipairs(KEYS) do times[#times + 1] = redis.call('PTTL', key) end
return times
"""
ABSENT = -2  # PTTL of a missing key
MONTH = 30 * 24 * 3_600_000
MINUTE = 60_000
LARGE = {"session_ms": 9_000, "longest_ms": 90_000, "retention_ms": 9 * MINUTE, "grace_ms": 9 * MINUTE}
SMALL = {"session": SESSION, "longest": LONGEST, "retention": MINUTE, "grace": 0}
LARGEST = {"session": 9_000, "longest": 90_000, "retention": 9 * MINUTE, "grace": 9 * MINUTE}


def test_clock_ahead__a_dead_member_of_a_month_ahead_is_waited_for_one_session(world: World) -> None:
    """Rule: clock-ahead.

    Redis TIME decides leases, turns, recoveries, the grace of a growth, and when a failing key is tried again.
    """
    world.found(p0=5)
    world.lapse(MONTH)
    world.store.positions.acquire(world.join("dead"), WANTED)
    world.now -= MONTH  # the clock of Redis is set right
    me = world.join()
    assert world.store.positions.acquire(me, WANTED).value.ownership == {TP: ()}
    world.outlive(me)
    assert world.store.positions.acquire(me, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}


def test_settings_that_differ__the_longest_retention_counts(world: World) -> None:
    """Rule: settings-that-differ. Members of a group may have different settings."""
    world.now = world.store.positions.now_ms()
    world.found(p0=5)
    short, long = world.store_with(retention_ms=MINUTE), world.store_with(retention_ms=60 * MINUTE)
    first, second = world.join("m-1"), world.join("m-2")
    long.members.heartbeat(second)
    short.members.heartbeat(first)
    left = float(str(world.redis.pttl(GroupKeys(world.group).meta)))
    assert round(left / MINUTE) == 60, "the server's own clock goes on"


def join_with(world: World, member: str, **times: int) -> None:
    world.store_with(**times).members.join(Caller(member, "i1"), "", Joining(FIELDS))


def test_settings_that_differ__the_largest_times_count_until_a_member_joins_alone(world: World) -> None:
    world.found(p0=5)
    join_with(world, "m-1", **LARGE)
    join_with(world, "m-2")
    assert world.longest_times() == LARGEST
    world.lapse(9_000)  # the lease of m-1 runs to the end of this moment
    join_with(world, "m-3")
    assert world.longest_times() == LARGEST
    world.lapse(SESSION + 1)
    join_with(world, "m-4")
    assert world.longest_times() == SMALL


def test_group_expiry__all_keys_expire_at_one_moment_after_the_lease(world: World) -> None:
    """Rule: group-expiry. Heartbeats push the expiry of all keys to one moment."""
    me = world.owner()
    world.store.positions.report_ends({TP: 9}, {})
    world.store.members.heartbeat(me)
    named = GroupKeys(world.group)
    keys = [*named.all([TP]), named.member("m-1")]
    seconds, microseconds, *left = cast(list[int], world.redis.eval(AT_ONE_MOMENT, len(keys), *keys))
    moments = {ms + int(seconds) * 1000 + int(microseconds) // 1000 for ms in left if ms != ABSENT}
    assert max(moments) - min(moments) <= 1, "a millisecond begins between the clock and the key's own"
    assert world.now + SESSION + 60_000 - 1 <= max(moments) <= world.now + SESSION + 60_000 + 1


def test_topic_expiry__the_time_of_a_topic_begins_anew_with_each_subscriber(world: World) -> None:
    """Rule: topic-expiry. Positions of a topic expire while the group lives if no member subscribes to it."""
    left = TopicPartition("payments", 0)
    world.found(p0=5)
    world.store.positions.create("", {"payments": Topic("payments", "id-2", (0,))}, {left: 7})
    me = world.join()

    def forgotten(later_ms: int = 0) -> tuple[TopicPartition, ...]:
        world.lapse(later_ms)
        world.store.members.heartbeat(me)
        return world.store.members.forget(me, ("payments",)).value

    assert forgotten() == (), "nobody subscribes to it from now on"
    world.lapse(MINUTE - 1)
    reader = world.join("m-2", "i2", topics="orders,payments")
    assert forgotten(1) == ()
    world.store.members.leave(reader, {})
    assert forgotten(MINUTE) == ()
    assert forgotten(MINUTE) == (left,)


def test_ownership_events__a_range_that_moves_is_assigned_revoked_and_assigned(world: World) -> None:
    """Rule: ownership-events. Every change of ownership is an event with key ranges."""
    world.found(p0=0, p1=0)
    one, two = world.join(), world.join("m-2", "i2")
    world.store.positions.acquire(one, {TP: (WHOLE,), OTHER: (WHOLE,)})
    world.assign(one, {"m-1": {TP: (LOWER,), OTHER: (WHOLE,)}, "m-2": {TP: (UPPER,)}})
    world.store.members.release(one, {TP: (UPPER,)})
    for _ in range(2):
        world.store.positions.acquire(two, {TP: (UPPER,)})
    world.store.members.leave(two, {TP: ()})

    moves = last_events(world.client, world.group, 7)
    assert [(e.kind, e.member, e.ranges) for e in moves if e.ranges] == [
        ("assigned", "m-1", "orders-0 whole, orders-1 whole"),
        ("revoked", "m-1", f"orders-0 {UPPER}"),
        ("assigned", "m-2", f"orders-0 {UPPER}"),
        ("revoked", "m-2", f"orders-0 {UPPER}"),
    ]
