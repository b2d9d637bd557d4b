"""Members of one group that have different settings: the longest retention and growth grace count.

rule: settings-that-differ. The clock stands still between calls.
"""

import pytest

from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller, Joining
from coordinator.redis.store import Store
from coordinator.values.subscription import Topic, TopicPartition
from coordinator.values.verdicts import Recovering
from store_world import FIELDS, LONGEST, NO_MEMBER, OTHER, SESSION, TOPICS, TP, World

ON_EACH_SERVER = True
MINUTE = 60_000
LEFT = TopicPartition("payments", 0)
LEFT_TOPICS = {"payments": Topic("payments", "id-2", (0,))}


def join(store: Store, member: str, before: str = "") -> Caller:
    seen = store.members.join(Caller(member, "i1"), before, Joining(FIELDS)).seen
    return Caller(member, "i1", seen.nonce, str(seen.seq))


def test_a_topic_without_subscribers_is_kept_for_the_longest_retention(world: World) -> None:
    world.found(p0=5)
    world.store.positions.create("", LEFT_TOPICS, {LEFT: 7})
    short, long = world.store_with(retention_ms=MINUTE), world.store_with(retention_ms=3 * MINUTE)
    first, _ = join(short, "m-1"), join(long, "m-2")
    assert short.members.forget(first, ["payments"]).value == ()
    world.lapse(3 * MINUTE - 1)
    assert short.members.forget(first, ["payments"]).value == (), "m-2 keeps it for three minutes"
    world.lapse(1)
    assert short.members.forget(first, ["payments"]).value == (LEFT,)


def test_a_growth_waits_for_the_longest_grace_whoever_sees_it(world: World) -> None:
    world.store.positions.create("aa", {"orders": Topic("orders", "id-1", (0,))}, {TP: 0}, grace_ms=MINUTE)
    join(world.store_with(grace_ms=10 * MINUTE), "m-1")
    one = world.store_with(grace_ms=0)
    join(one, "m-2")
    one.positions.create("", TOPICS, {OTHER: 0}, grace_ms=0)
    assert [g.until_ms - g.seen_ms for g in one.positions.growths()] == [10 * MINUTE]
    assert world.events("growth") == ["orders: 1 -> 2 partitions; key order across it is kept"]


def test_a_growth_that_no_member_has_joined_for_waits_as_its_finder_says(world: World) -> None:
    world.store.positions.create("aa", {"orders": Topic("orders", "id-1", (0,))}, {TP: 0}, grace_ms=MINUTE)
    world.store.positions.create("", TOPICS, {OTHER: 0}, grace_ms=MINUTE)
    assert [g.until_ms - g.seen_ms for g in world.store.positions.growths()] == [MINUTE]


LARGE = {"session_ms": 9_000, "longest_ms": 90_000, "retention_ms": 9 * MINUTE, "grace_ms": 9 * MINUTE}
LARGEST = {"session": 9_000, "longest": 90_000, "retention": 9 * MINUTE, "grace": 9 * MINUTE}
SMALL = {"session": SESSION, "longest": LONGEST, "retention": MINUTE, "grace": 0}


def test_a_member_that_slept_raises_them_again(world: World) -> None:
    world.found(p0=5)
    large = world.store_with(**LARGE)
    sleeper = join(large, "m-1")
    world.lapse(9_001)
    join(world.store_with(), "m-2")
    assert world.longest_times() == SMALL
    large.members.heartbeat(sleeper)
    assert world.longest_times() == LARGEST


def test_they_do_not_go_down_for_the_first_member_that_joins_after_an_outage(world: World) -> None:
    """All leases have ended, so the others get time to come back, and their settings count (rule: outage-grace)."""
    world.found(p0=5)
    join(world.store_with(**LARGE), "m-1")
    join(world.store_with(), "m-2")
    world.now += 9_001
    join(world.store_with(), "m-2")
    assert world.longest_times() == LARGEST


def test_after_an_outage_each_member_gets_half_of_its_own_session(world: World) -> None:
    """Rule: outage-grace. A short session must not end in an outage that a long one does not feel."""
    world.found(p0=5)
    join(world.store_with(**LARGE), "m-1")
    join(world.store_with(), "m-2")
    world.now += SESSION + 1
    join(world.store_with(**LARGE), "m-1")
    leases = GroupKeys(world.group).leases
    ends = {member: world.redis.zscore(leases, member) for member in ("m-1", "m-2")}
    assert ends == {"m-1": world.now + 9_000, "m-2": world.now + SESSION // 2}


def test_they_do_not_go_down_while_the_group_recovers(world: World) -> None:
    """Members of before the loss have no lease yet, and may join again."""
    world.found(p0=5)
    small = world.store_with()
    join(small, "m-2")
    join(world.store_with(**LARGE), "m-1")
    world.restart()
    small.positions.recover(NO_MEMBER, "bb", "restarted", 0, TOPICS, {TP: None})
    join(small, "m-2", "aa")
    with pytest.raises(Recovering):
        join(small, "m-3")
    assert (world.longest_times()["retention"], world.longest_times()["grace"]) == (9 * MINUTE, 9 * MINUTE)
