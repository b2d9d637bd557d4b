"""Positions in a real Redis: founded, acquired, authorised, committed. Transition tests are named by the arrow."""

import pytest

from coordinator import verdicts
from coordinator.key_hash import cuts
from coordinator.ownership import Fact, Owned, completed
from coordinator.ranges import WHOLE
from coordinator.redis_snapshot import list_groups
from coordinator.stream_offset import StreamOffset
from store_world import BIG, NOBODY, OTHER, SESSION, TOPICS, TP, WANTED, World, lane, offset


def test_nothing_to_founded_sets_first_positions_once(world: World) -> None:
    with pytest.raises(verdicts.Absent):
        world.store.status(NOBODY)
    assert world.store.found(NOBODY, "aa", TOPICS, {TP: 5}) == 1
    assert world.store.found(NOBODY, "bb", TOPICS, {TP: 9, OTHER: 7}) == 1
    assert world.store.status(NOBODY).seen.nonce == "aa"
    assert world.store.stable(["orders"]) == {TP: 5, OTHER: 7}
    assert world.group in list_groups(world.client)


def test_free_to_owned_gives_a_new_epoch_and_owned_to_owned_keeps_it(world: World) -> None:
    world.found()
    me = world.join()
    first = world.store.acquire(me, WANTED).value
    assert first.ownership == {TP: (Owned(WHOLE, "aa.1"),)}
    assert world.store.acquire(me, WANTED).value.ownership == first.ownership


def test_released_to_owned_takes_an_epoch_never_used_before(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    assert world.store.leave(me, {TP: ()}) == 0
    assert world.store.acquire(world.join("m-1", "i2"), WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}


def test_commit_moves_positions_and_repeats_change_nothing(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    lower, upper = cuts(2)
    end = offset(lane("aa.1", 0, 10, lower), lane("aa.1", 0, 20, upper))
    for _ in range(2):
        assert world.store.commit(me, end, completed(end)).value == {}
        assert world.positions() == {str(lower): "10", str(upper): "20"}
        assert world.store.stable(["orders"])[TP] == 10


def test_an_older_commit_never_moves_a_position_back(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    for until in (20, 10):
        end = offset(lane("aa.1", 0, until))
        world.store.commit(me, end, completed(end))
    assert world.positions() == {str(WHOLE): "20"}


def test_equal_neighbours_become_one_segment_again(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    for n in (2, 7, 3):
        end = offset(*(lane("aa.1", 0, 10 * n, h) for h in cuts(n)))
        world.store.commit(me, end, completed(end))
    assert world.positions() == {str(WHOLE): "70"}


def test_positions_beyond_what_a_double_holds_are_compared_exactly(world: World) -> None:
    world.found(p0=BIG - 1)
    me = world.join()
    world.store.acquire(me, WANTED)
    end = offset(lane("aa.1", BIG - 1, BIG))
    world.store.commit(me, end, completed(end))
    assert world.store.stable(["orders"])[TP] == BIG
    world.store.claim(NOBODY, end, {TP: (Fact(WHOLE, BIG - 1),)})
    assert world.store.stable(["orders"])[TP] == BIG


def test_a_commit_of_another_epoch_is_refused_and_does_not_block_what_is_owned(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    lower, upper = cuts(2)
    end = offset(lane("aa.1", 0, 10, lower), lane("aa.9", 0, 20, upper))
    assert world.store.commit(me, end, completed(end)).value == {TP: (Fact(upper, 20, "aa.9"),)}
    assert world.positions() == {str(lower): "10", str(upper): "0"}


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(offset(lane("aa.1", 0, 10), reset=1), id="of another reset epoch"),
        pytest.param(offset(lane("aa.1", 0, 10), topic_id="id-2"), id="of another topic id"),
    ],
)
def test_facts_of_another_world_are_refused_and_ignored(world: World, end: StreamOffset) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    assert world.store.commit(me, end, completed(end)).value == completed(end)
    world.store.claim(NOBODY, end, {TP: (Fact(WHOLE, 10),)})
    assert world.store.authorize(me, end).value == {TP: ()}
    assert world.positions() == {str(WHOLE): "0"}


def test_authorisation_names_the_parts_still_owned(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    lower, upper = cuts(2)
    end = offset(lane("aa.1", 0, 10, lower), lane("aa.7", 0, 10, upper))
    assert world.store.authorize(me, end).value == {TP: (Owned(lower, "aa.1"),)}


def test_live_to_takeable_keeps_the_owner_until_another_member_acquires(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    world.now += 10 * SESSION
    end = offset(lane("aa.1", 0, 10))
    assert world.store.authorize(me, end).value == {TP: (Owned(WHOLE, "aa.1"),)}
    assert world.store.commit(me, end, completed(end)).value == {}


def test_takeable_to_taken_fences_the_old_owner(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    world.now += 10 * SESSION
    other = world.join("m-2", "i2")
    assert world.store.acquire(other, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}
    end = offset(lane("aa.1", 0, 10))
    assert world.store.authorize(me, end).value == {TP: ()}
    assert world.store.commit(me, end, completed(end)).value == completed(end)
    assert world.positions() == {str(WHOLE): "0"}
