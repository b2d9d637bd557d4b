"""Where a group begins, and where it goes on after a reset (docs/protocol.md#positions)."""

import pytest

from coordinator.progress.ownership import Fact, completed
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller, Joining
from coordinator.redis.snapshot import list_groups
from coordinator.values import verdicts
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from store_world import BIG, OTHER, TOPICS, TP, WANTED, World, lane, offset

ON_EACH_SERVER = True
LOWER, UPPER = cuts(2)


def test_first_positions__they_are_set_once(world: World) -> None:
    """Rule: first-positions.

    First positions come from Redis; else from Kafka's own group of that name; else from startingOffsets.
    """
    with pytest.raises(verdicts.Absent):
        world.store.positions.status()
    assert world.store.positions.create("aa", TOPICS, {TP: 5}).value == 1
    assert world.store.positions.create("bb", TOPICS, {TP: 9, OTHER: 7}).value == 1
    assert world.redis.hget(GroupKeys(world.group).meta, "nonce") == "aa"
    assert world.store.positions.stable(["orders"]) == {TP: 5, OTHER: 7}
    assert world.group in list_groups(world.client)


def test_first_positions__they_inherit_no_individual_commits(world: World) -> None:
    """First positions come from Redis; else from Kafka's own group of that name; else from startingOffsets."""
    world.owner({str(WHOLE): "45-47"}, p0=43)
    world.redis.delete(GroupKeys(world.group).segments(TP))
    world.found(p0=3)
    assert (world.positions(), world.ics()) == ({str(WHOLE): "3"}, {})


def test_create_once__a_call_that_only_places_partitions_creates_no_group(world: World) -> None:
    """Rule: create-once. Only a first start creates a group.

    If it comes late, it would create the group again after a loss of state.
    """
    with pytest.raises(verdicts.Absent):
        world.store.positions.create("", TOPICS, {TP: 5})
    assert not world.redis.exists(GroupKeys(world.group).meta)


def test_assert_beginnings__an_assertion_moves_over_individual_commits_too(world: World) -> None:
    """Rule: assert-beginnings. The verb `claim` has no fence."""
    world.owner({str(WHOLE): "45-47 50-50"}, p0=43)
    world.store.positions.claim(offset(), {TP: (Fact(LOWER, 45), Fact(UPPER, 43, "", (OffsetRange(48, 50),)))})
    assert world.positions() == {str(LOWER): "48", str(UPPER): "43"}
    assert world.ics() == {str(LOWER): "50-50", str(UPPER): "45-50"}


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(offset(lane("aa.1", 0, 10), reset=8), id="of an older reset epoch"),
        pytest.param(offset(lane("aa.1", 0, 10), reset=9, topic_id="id-2"), id="of another topic id"),
    ],
)
def test_reset_epoch__facts_of_before_a_reset_are_refused_and_ignored(world: World, end: StreamOffset) -> None:
    """Rule: reset-epoch.

    An operator's reset takes a new reset epoch, voids all lane epochs, and writes the mirror first.
    """
    world.found()
    world.redis.hset(GroupKeys(world.group).meta, "reset_epoch", "9")
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    assert world.commit(me, end) == completed(end)
    world.store.positions.claim(end, {TP: (Fact(WHOLE, 10),)})
    assert world.store.positions.authorize(me, end).value.owned == {TP: ()}
    assert world.positions() == {str(WHOLE): "0"}


def test_reset_epoch__a_newer_one_than_redis_has_is_a_loss_of_state(world: World) -> None:
    me = world.owner()
    end = offset(lane("aa.1", 0, 10), reset=1)
    for verb in (
        lambda: world.commit(me, end),
        lambda: world.store.positions.claim(end, {TP: (Fact(WHOLE, 10),)}),
        lambda: world.store.positions.authorize(me, end),
    ):
        with pytest.raises(verdicts.Lost, match="before a reset"):
            verb()
    assert world.positions() == {str(WHOLE): "0"}


def test_available_now__targets_are_raised_to_those_of_the_others(world: World) -> None:
    """Rule: available-now. Targets are the log ends at the start, raised to those of other AvailableNow members."""
    world.found()
    first = Joining({}, targets={TP: 10, OTHER: 30})
    second = Joining({}, targets={TP: 20, OTHER: BIG})
    assert world.store.members.join(Caller("m-1", "i1"), "", first).value.targets == {TP: 10, OTHER: 30}
    assert world.store.members.join(Caller("m-2", "i2"), "", second).value.targets == {TP: 20, OTHER: BIG}
    assert world.store.members.join(Caller("m-3", "i3"), "", first).value.targets == {TP: 20, OTHER: BIG}


def test_available_now__it_ends_once_the_hashes_of_every_owner_are_done(world: World) -> None:
    world.found(p0=5, p1=7)
    me = world.join()
    assert world.store.members.finish(me, {TP: 5, OTHER: 8}).value is False
    assert world.store.members.finish(me, {TP: 5, OTHER: 7}).value is True


def test_available_now__it_ends_where_individual_commits_reach_the_target(world: World) -> None:
    """Targets are the log ends at the start, raised to those of other AvailableNow members."""
    me = world.owner({str(WHOLE): "45-50"}, p0=43)
    assert not world.store.members.finish(me, {TP: 51}).value
    world.set_ics({str(WHOLE): "43-50"})
    assert not world.store.members.finish(me, {TP: 52}).value
    assert world.store.members.finish(me, {TP: 51}).value
