"""Positions in a real Redis: founded, acquired, authorised, committed. Transition tests are named by the arrow."""

from dataclasses import replace

import pytest

from coordinator.progress.ownership import Fact, completed
from coordinator.progress.stream_offset import Lane
from coordinator.redis.keys import GroupKeys
from coordinator.values.ranges import WHOLE, OffsetRange
from store_world import LOWER, OTHER, TOPICS, TP, UPPER, World, lane, offset

ON_EACH_SERVER = True


def test_a_commit_is_exact_only_if_all_is_done_exactly_up_to_its_end(world: World) -> None:
    me = world.owner()

    def exactly(*lanes: Lane) -> bool:
        end = offset(*lanes)
        return world.store.positions.commit(me, end, completed(end)).value.exactly

    assert exactly(lane("aa.1", 0, 10, LOWER), lane("aa.1", 0, 20, UPPER))
    assert exactly(lane("aa.1", 0, 20)), "one segment again"
    assert not exactly(lane("aa.1", 0, 10)), "it was further already"
    assert not exactly(lane("aa.1", 0, 30, LOWER), lane("aa.9", 0, 30, UPPER)), "a part of it was refused"
    with_ics = Lane(LOWER, "aa.1", 30, (OffsetRange(30, 31), OffsetRange(35, 36)))
    assert not exactly(with_ics, lane("aa.1", 0, 31, UPPER)), "it left an individual commit"
    assert not exactly(lane("aa.1", 31, 32, UPPER)), "the partition still has one elsewhere"
    assert exactly(lane("aa.1", 31, 40)), "the position has passed it"


def stored(world: World) -> str | None:
    text = world.redis.hget(GroupKeys(world.group).epoch("orders"), "0")
    return str(text) if text is not None else None


@pytest.mark.parametrize(
    ("text", "left"),
    [
        pytest.param("3@99 reset=0 topic=id-1", "4@90 reset=0 topic=id-1", id="an older one: by a late look"),
        pytest.param("4@99 reset=0 topic=id-1", "4@99 reset=0 topic=id-1", id="the same"),
        pytest.param("10@99 reset=0 topic=id-1", "10@99 reset=0 topic=id-1", id="a newer one"),
        pytest.param("0@9 reset=7 topic=id-1", "0@9 reset=7 topic=id-1", id="of another reset epoch"),
        pytest.param("0@9 reset=0 topic=id-2", "0@9 reset=0 topic=id-2", id="of another topic id"),
    ],
)
def test_a_stored_leader_epoch_stays_unless_a_newer_one_is_stored(world: World, text: str, left: str) -> None:
    world.found(p0=5)
    for cut in (False, True):
        world.redis.hset(GroupKeys(world.group).epoch("orders"), "0", "4@90 reset=0 topic=id-1")
        if cut:
            world.store.positions.recreate(TOPICS, {TP: 5}, {TP: text})
        else:
            world.store.positions.report_ends({TP: 99}, {TP: text})
        assert stored(world) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        pytest.param("4@9 reset=0 topic=id-1", "4@90 reset=0 topic=id-1", id="a lower end: an open transaction"),
        pytest.param("3@100 reset=0 topic=id-1", "4@90 reset=0 topic=id-1", id="of an older leader epoch"),
        pytest.param("4@100 reset=0 topic=id-1", "4@100 reset=0 topic=id-1", id="a larger end"),
    ],
)
def test_a_larger_end_of_the_same_leader_epoch_stays(world: World, text: str, left: str) -> None:
    world.found(p0=5)
    world.redis.hset(GroupKeys(world.group).epoch("orders"), "0", "4@90 reset=0 topic=id-1")
    world.store.positions.report_ends({TP: 99}, {TP: text})
    assert stored(world) == left


def test_a_log_that_was_cut_under_the_same_leader_epoch_has_a_lower_end(world: World) -> None:
    """As where brokers restore a copy of their disk."""
    world.found(p0=5)
    world.redis.hset(GroupKeys(world.group).epoch("orders"), "0", "4@90 reset=0 topic=id-1")
    world.store.positions.recreate(TOPICS, {TP: 5}, {TP: "4@9 reset=0 topic=id-1"})
    assert stored(world) == "4@9 reset=0 topic=id-1"


def test_positions_of_a_cut_log_and_its_leader_epoch_change_together(world: World) -> None:
    world.found(p0=5, p1=5)
    world.store.positions.recreate(TOPICS, {OTHER: 4, TP: 3}, {TP: "4@90 reset=0 topic=id-1"})
    assert (world.store.positions.stable(["orders"]), stored(world)) == ({TP: 3, OTHER: 4}, "4@90 reset=0 topic=id-1")
    end = replace(offset(lane("aa.1", 5, 10)), leader_epochs={TP: 3, OTHER: 3})
    world.store.positions.claim(end, {TP: (Fact(WHOLE, 10),), OTHER: (Fact(WHOLE, 10),)})
    assert world.store.positions.stable(["orders"]) == {TP: 3, OTHER: 10}
