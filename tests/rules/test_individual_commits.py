"""Offsets that a user commits one by one, ahead of the position (docs/protocol.md#individual-commits)."""

import pytest

from coordinator.plan.planning import Cutting, plan, with_positions
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.replies import Caller
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from store_world import OTHER, TP, WANTED, World, lane, offset

ON_EACH_SERVER = True
LOWER, UPPER = cuts(2)


def planned(world: World, me: Caller, until: int) -> StreamOffset:
    """The offset of one lane that reads what is missing up to `until`."""
    acquired = world.store.positions.acquire(me, WANTED).value
    return offset(*plan(with_positions(acquired.ownership, acquired.progress), {TP: until}, Cutting(1))[TP])


def test_ics_may_vanish__those_deleted_before_a_plan_are_read_again(world: World) -> None:
    """Rule: ics-may-vanish. Individual commits may be deleted at any time."""
    me = world.owner({str(WHOLE): "43-45 48-49"}, p0=41)
    world.delete_ics()
    assert str(planned(world, me, 51).lanes[TP][0]) == "aa.1@41-50"


@pytest.mark.parametrize("text", ["45", "47-45", "a-b", "50-51 45-46", "45-47 46-48"])
def test_ics_may_vanish__damaged_ones_are_deleted_and_the_commit_goes_on(world: World, text: str) -> None:
    me = world.owner(p0=43)
    world.set_ics({str(LOWER): text, str(UPPER): "47-48"})
    assert world.commit(me, offset(lane("aa.1", 43, 44))) == {}
    assert (world.positions(), world.ics()) == ({str(LOWER): "44", str(UPPER): "44"}, {str(UPPER): "47-48"})
    assert len(world.events("mend")) == 1


def test_ics_may_vanish__a_look_has_only_sound_ones(world: World) -> None:
    world.found(p0=43)
    world.set_ics({str(WHOLE): "45-46", "damaged": "50"})
    assert world.store.positions.progress([TP, OTHER]) == {TP: Progress((Segment(WHOLE, 43, (OffsetRange(45, 47),)),))}
