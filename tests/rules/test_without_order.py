"""Members that share a partition by offsets; and clocks, settings, expiry (docs/protocol.md#without-order)."""

from typing import cast

import pytest

from coordinator.progress.ownership import Fact, Owned
from coordinator.redis.events import last_events
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller, Joining
from coordinator.values import verdicts
from coordinator.values.ranges import WHOLE, offsets_of
from coordinator.values.subscription import Topic, TopicPartition
from handed_slices import commit, hand_out, join, offset_of, slices
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


def test_one_ordering__it_changes_only_without_other_members_and_voids_all_epochs(world: World) -> None:
    """Rule: one-ordering. The ordering belongs to the group: `key`, `partition` or `none`."""
    world.found()
    by_key = world.joining("m-1", ordering="key", next_nonce="bb")
    world.store.positions.acquire(by_key, WANTED)
    with pytest.raises(verdicts.OtherOrdering) as refused:
        join(world, "m-2")
    assert (refused.value.theirs, refused.value.member) == ("key", "m-1")
    assert (refused.value.lease_end_ms, refused.value.now_ms) == (world.now + SESSION, world.now)
    world.lapse(SESSION + 1)
    assert join(world, "m-2").nonce == "bb"
    with pytest.raises(verdicts.Rejoin):
        world.store.positions.acquire(by_key, WANTED)
    with pytest.raises(verdicts.OtherOrdering):
        join(world, "m-1", "i2", ordering="key")


def test_one_ordering__a_change_makes_slices_void(world: World) -> None:
    world.found()
    mine = hand_out(world, join(world, "m-1"), 10)
    join(world, "m-1", "i2", ordering="key", nonce="cc")
    again = join(world, "m-1", "i3", nonce="dd")
    assert world.store.positions.authorize(again, offset_of("m-1", mine)).value.owned == {TP: ()}
    assert slices(hand_out(world, again, 10)) == "0-9"


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("a", ""), ("", "b")])
def test_one_application__a_group_that_one_reads_alone_admits_no_other(world: World, first: str, second: str) -> None:
    """Rule: one-application. With `sharing=never`, one checkpoint reads the group."""
    world.found()
    world.joining("m-1", alone=first)
    with pytest.raises(verdicts.Alone) as refused:
        world.joining("m-2", alone=second)
    assert (refused.value.member, refused.value.theirs) == ("m-1", first)
    assert refused.value.lease_end_ms == world.now + SESSION
    world.lapse(SESSION + 1)
    assert world.joining("m-2", alone=second).nonce


@pytest.mark.parametrize("gone", [pytest.param(False, id="at work"), pytest.param(True, id="gone again")])
def test_one_application__a_life_that_read_alone_ends_once_another_has_read(world: World, gone: bool) -> None:
    """Its checkpoint lacks what the other one read, also if that one has gone."""
    world.found()
    slept = world.joining("m-1", alone="a")
    world.lapse(SESSION + 1)
    world.joining("m-2", alone="b")
    world.lapse(SESSION + 1 if gone else 0)
    with pytest.raises(verdicts.Missed):
        world.joining("m-1", before=slept.nonce, alone="a")


def test_hand_out__two_members_get_the_next_free_offsets(world: World) -> None:
    """Rule: hand-out. A member asks for offsets before each batch.

    [40-49]: the first member gets [40-44], the second [45-49], though offset 40 is the lowest that is not done.
    """
    world.found(p0=40)
    first, second = join(world, "m-1"), join(world, "m-2")
    one, two = hand_out(world, first, 5), hand_out(world, second, 5)
    assert (slices(one), slices(two)) == ("40-44", "45-49")
    assert one.positions[TP] == two.positions[TP] == 40
    assert commit(world, second, two) == {}
    assert (world.positions(), world.ics()) == ({str(WHOLE): "40"}, {str(WHOLE): "45-49"})  # one range, not five
    assert commit(world, first, one) == {}
    assert (world.positions(), world.ics()) == ({str(WHOLE): "50"}, {})
    assert slices(hand_out(world, second)) == ""


def test_hand_out__done_offsets_are_left_out(world: World) -> None:
    world.found(p0=40)
    world.set_ics({str(WHOLE): "43-45 48-49"})
    handed = hand_out(world, join(world, "m-1"), 5)
    assert slices(handed) == "40-42 46-47"
    assert commit(world, join(world, "m-1"), handed) == {}
    assert world.positions() == {str(WHOLE): "50"}


def test_hand_out__a_call_first_frees_what_its_caller_holds(world: World) -> None:
    """The same offsets come at a new lane epoch."""
    world.found()
    me, other = join(world, "m-1"), join(world, "m-2")
    before = hand_out(world, me, 10)
    again = hand_out(world, me, 10)
    assert (slices(before), slices(again)) == ("0-9", "0-9")
    assert before.epoch != again.epoch
    assert world.store.positions.authorize(me, offset_of("m-1", before)).value.owned == {TP: ()}
    assert commit(world, me, before) == {TP: (Fact(WHOLE, 0, before.epoch, offsets_of("0-9")),)}
    assert slices(hand_out(world, other, 10)) == "10-19"


def test_slice_end__another_member_gets_them_once_the_lease_has_ended(world: World) -> None:
    """Rule: slice-end. Another member may get a slice if the lease of its holder has ended."""
    world.found()
    dead, alive = join(world, "m-1"), join(world, "m-2")
    lost = hand_out(world, dead, 10)
    world.lapse(SESSION)
    world.store.members.heartbeat(alive)
    assert slices(hand_out(world, alive, 10)) == "10-19"
    world.lapse(1)
    assert slices(hand_out(world, alive, 10)) == "0-9"
    assert world.events("lost") == ["handed out again to m-2: no sign of life of its member"]
    assert commit(world, dead, lost) == {TP: (Fact(WHOLE, 0, lost.epoch, offsets_of("0-9")),)}
    assert world.positions() == {str(WHOLE): "0"}


def test_slice_end__its_member_keeps_them_until_another_one_asks(world: World) -> None:
    world.found()
    me = join(world, "m-1")
    mine = hand_out(world, me, 10)
    world.lapse(10 * SESSION)
    assert commit(world, me, mine) == {}


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
