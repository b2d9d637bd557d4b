"""What each script of Redis keeps to (docs/protocol.md#scripts)."""

from dataclasses import replace

import pytest

from coordinator.errors import StateFormatError
from coordinator.progress.ownership import Fact
from coordinator.redis.keys import GroupKeys
from coordinator.redis.snapshot import read_group
from coordinator.values import verdicts
from coordinator.values.ranges import WHOLE
from store_world import BIG, TP, WANTED, World, lane, offset

ON_EACH_SERVER = True


def test_check_then_write__a_key_of_another_type_is_a_named_error(world: World) -> None:
    """Rule: check-then-write.

    A script checks everything that it reads and everything that it was asked to write, and writes last.
    """
    me = world.owner(p0=43)
    world.redis.set(GroupKeys(world.group).ics(TP), "x")
    with pytest.raises(StateFormatError):
        assert world.commit(me, offset(lane("aa.1", 43, 44))) == {}
    assert world.positions() == {str(WHOLE): "43"}


def test_numbers_as_text__individual_commits_too_large_for_a_double_are_joined_exactly(world: World) -> None:
    """Rule: numbers-as-text.

    Scripts compare offsets and hashes as text: hashes have 16 digits, offsets are compared by length first.
    """
    me = world.owner({str(WHOLE): f"{BIG + 2}-{BIG + 2} {BIG + 4}-9999999999999999"}, p0=BIG)
    assert world.commit(me, offset(lane("aa.1", BIG, BIG + 1))) == {}
    assert world.positions() == {str(WHOLE): str(BIG + 1)}
    assert world.commit(me, offset(lane("aa.1", BIG, BIG + 2))) == {}
    assert world.positions() == {str(WHOLE): str(BIG + 3)}
    assert world.commit(me, offset(lane("aa.1", BIG, BIG + 4))) == {}
    assert (world.positions(), world.ics()) == ({str(WHOLE): "10000000000000000"}, {})


@pytest.mark.parametrize("first", range(BIG, BIG + 4), ids=["1", "2", "3", "4"])
def test_numbers_as_text__every_offset_too_large_for_a_double_is_counted_exactly(world: World, first: int) -> None:
    me = world.owner({str(WHOLE): f"{first + 2}-{first + 2}"}, p0=first)
    assert world.commit(me, offset(lane("aa.1", first, first + 2))) == {}
    assert (world.positions(), world.ics()) == ({str(WHOLE): str(first + 3)}, {})


def test_numbers_as_text__positions_too_large_for_a_double_are_compared_exactly(world: World) -> None:
    """Scripts compare offsets and hashes as text."""
    me = world.owner(p0=BIG - 1)
    end = offset(lane("aa.1", BIG - 1, BIG))
    world.commit(me, end)
    assert world.store.positions.stable(["orders"])[TP] == BIG
    world.store.positions.claim(end, {TP: (Fact(WHOLE, BIG - 1),)})
    assert world.store.positions.stable(["orders"])[TP] == BIG


def test_numbered_calls__a_call_that_arrives_after_the_next_one_changes_nothing(world: World) -> None:
    """Rule: numbered-calls. A member numbers the calls that it makes one after the other.

    Its client abandoned the call long ago, and Redis still ran it.
    """
    world.found()
    me = world.join()
    first, second, third, later = (replace(me, number=str(n)) for n in (8, 9, 10, 11))
    world.assign(world.join("m-2", "i2"), {"m-2": WANTED})
    world.store.positions.acquire(second, WANTED)
    world.store.positions.acquire(second, WANTED)  # the client itself may send one twice
    end = offset(lane("aa.1", 0, 10))
    world.commit(third, end)
    with pytest.raises(verdicts.Rejoin):
        world.store.positions.authorize(second, end)  # no batch begins that would never end
    assert world.store.members.release(later, WANTED).value == 1
    with pytest.raises(verdicts.Rejoin):
        world.store.positions.acquire(first, WANTED)
    world.store.members.heartbeat(me)  # made meanwhile: it has no number
    assert read_group(world.client, world.group).owners[TP] == (), "nothing is owned that nobody knows of"
    assert not world.redis.exists(GroupKeys(world.group).batches)
