"""A partition at its cap of individual commits: the lane behind is read as always, other lanes read only gaps."""

import pytest

from coordinator.plan.back_pressure import held_back
from coordinator.plan.planning import Cutting, OwnedRanges, plan, with_positions
from coordinator.progress.ownership import Owned
from coordinator.progress.segments import Progress, Segment
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition

A = TopicPartition("t", 0)
Q1, Q2, Q3, Q4 = cuts(4)


def ics(*offsets: int) -> tuple[OffsetRange, ...]:
    return tuple(OffsetRange(o, o + 1) for o in offsets)


def read(whole: Progress, most: int) -> list[str]:
    """The offsets that each of our three lanes reads of a log of 100 records, inclusive."""
    mine: OwnedRanges = with_positions({A: tuple(Owned(h, "e.1") for h in (Q1, Q2, Q3))}, {A: whole})
    lanes = plan(held_back(mine, {A: whole}, most), {A: 100}, Cutting(1))[A]
    return [" ".join(map(str, lane.offsets)) for lane in lanes]


@pytest.mark.parametrize(
    ("held", "most", "reads"),
    [
        pytest.param(4, 5, ["10-99", "20-29 31-99", "40-99"], id="below the cap no lane is limited"),
        pytest.param(4, 4, ["10-99", "20-29", ""], id="at the cap the lane behind reads on, the others fill gaps"),
        pytest.param(4, 1, ["10-99", "20-29", ""], id="beyond a cap that was lowered too"),
    ],
)
def test_reads_below_and_at_the_cap_of_individual_commits(held: int, most: int, reads: list[str]) -> None:
    foreign = Segment(Q4, 30, ics(50, 52, 54))
    whole = Progress((Segment(Q1, 10), Segment(Q2, 20, ics(30)), Segment(Q3, 40), foreign))
    assert sum(len(s.ics) for s in whole.segments) == held
    assert read(whole, most) == reads


def test_where_the_lane_behind_is_another_members_ours_wait() -> None:
    whole = Progress((Segment(Q1, 40), Segment(Q2, 40), Segment(Q3, 40), Segment(Q4, 30, ics(50))))
    assert read(whole, 1) == ["", "", ""]


def test_lanes_that_are_level_are_all_behind_and_so_nothing_ever_stands_still() -> None:
    whole = Progress(tuple(Segment(h, 30, ics(50)) for h in (Q1, Q2, Q3, Q4)))
    assert read(whole, 1) == ["30-49 51-99"] * 3
