"""Topics without subscribers are forgotten while the group lives (KIP-211). The clock stands still between calls."""

import pytest

from coordinator.progress.growth import Growth
from coordinator.redis.keys import GroupKeys
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.replies import Caller
from coordinator.values import verdicts
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Topic, TopicPartition
from store_world import OTHER, SESSION, TP, World

RETENTION_MS = 60_000
LEFT = TopicPartition("payments", 0)
LEFT_TOPICS = {"payments": Topic("payments", "id-2", (0,))}
ON_EACH_SERVER = True


@pytest.fixture
def me(world: World) -> Caller:
    """The one member, which reads orders; the group has positions of payments too."""
    world.found(p0=5, p1=6)
    world.store.positions.create("", LEFT_TOPICS, {LEFT: 7})
    return world.join()


def asks(world: World, me: Caller, *, later_ms: int = 0) -> tuple[TopicPartition, ...]:
    """The partitions that a call forgets, so much later. The member lives meanwhile."""
    world.lapse(later_ms)
    world.store.members.heartbeat(me)
    return world.store.members.forget(me, ("payments",)).value


def topics(world: World) -> set[str]:
    return set(world.store.positions.status().topics)


def test_retention_is_over__gone_with_all_its_keys_and_nothing_else(world: World, me: Caller) -> None:
    owner = world.join("m-2", "i2", topics="payments")
    world.store.positions.acquire(owner, {LEFT: (WHOLE,)})
    world.store.positions.report_ends({LEFT: 9, TP: 9}, {LEFT: "1@9 reset=0 topic=id-2"})
    world.store.positions.grow([Growth("payments", "id-2", 1, 2, 1, 2), Growth("orders", "id-1", 1, 2, 1, 2)])
    world.store.poison.working(owner, f"payments 0 {WHOLE} 7-8;")
    world.outlive(me)
    world.store.poison.strike("m-2")
    assert asks(world, me) == ()
    assert asks(world, me, later_ms=RETENTION_MS - 1) == ()
    assert asks(world, me, later_ms=1) == (LEFT,)
    names = OperatorVerbs.of_group(world.client, world.group).names()
    assert [name for name in names if "payments" in name] == []
    assert (topics(world), world.store.poison.strikes()) == ({"orders"}, ())
    assert [g.topic for g in world.store.positions.growths()] == ["orders"]
    assert dict(world.store.positions.stable(["orders"])) == {TP: 5, OTHER: 6}
    assert world.events("forget") == ["payments: no member has subscribed to it for offsetsRetention"]


def test_first_positions_are_asked_for_before__kept_until_that_member_joins(world: World, me: Caller) -> None:
    """A query places partitions before it joins: between the two, they must not vanish."""
    asks(world, me)
    world.lapse(RETENTION_MS)
    world.store.positions.create("", LEFT_TOPICS, {LEFT: 99})
    assert asks(world, me) == ()
    assert dict(world.store.positions.stable(["payments"])) == {LEFT: 7}


def test_a_lease_of_a_subscriber_runs__kept_but_not_after_its_end(world: World, me: Caller) -> None:
    world.join("m-2", "i2", topics="payments")
    assert asks(world, me, later_ms=SESSION) == ()
    assert asks(world, me, later_ms=1) == ()  # marked now
    assert asks(world, me, later_ms=RETENTION_MS) == (LEFT,)


def test_the_entry_of_a_live_member_is_gone__nothing_is_forgotten(world: World, me: Caller) -> None:
    """Nobody knows its topics."""
    asks(world, me)
    world.lapse(RETENTION_MS)
    world.join("m-2", "i2", topics="payments")
    world.redis.delete(GroupKeys(world.group).member("m-2"))
    assert asks(world, me) == ()
    assert topics(world) == {"orders", "payments"}


@pytest.mark.parametrize("mark", ["soon", "9" * 15, "9" * 40, ""])
def test_the_mark_is_damaged_or_in_the_future__its_time_begins_anew(world: World, me: Caller, mark: str) -> None:
    world.redis.hset(GroupKeys(world.group).meta, "unsubscribed payments", mark)
    assert asks(world, me) == ()
    assert asks(world, me, later_ms=RETENTION_MS) == (LEFT,)


def test_the_topic_comes_back_later__begins_at_its_new_first_position(world: World, me: Caller) -> None:
    asks(world, me)
    asks(world, me, later_ms=RETENTION_MS)
    assert world.store.positions.create("", LEFT_TOPICS, {LEFT: 99}).value == 1
    assert dict(world.store.positions.stable(["payments"])) == {LEFT: 99}
    assert world.events("mend") == []
    assert asks(world, me) == ()  # a first mark: the earlier one went with the topic


def test_the_group_recovers__refused(world: World, me: Caller) -> None:
    """Leases are void: every member looks dead."""
    world.join("m-2")
    world.restart()
    world.store.positions.recover(me, "bb", "restarted", 0, LEFT_TOPICS, {LEFT: None})
    again = world.join(before="aa")
    with pytest.raises(verdicts.Recovering):
        world.store.members.forget(again, ("payments",))


def test_a_topic_is_forgotten__an_assignment_is_due(world: World, me: Caller) -> None:
    asks(world, me)
    before = world.store.members.look(me).value.occasion
    asks(world, me, later_ms=RETENTION_MS)
    assert world.store.members.look(me).value.occasion not in ("", before)
