"""The plane in characters: a row for each lane, and no more rows than there is room for."""

from coordinator.progress.failing import FailingRecord
from coordinator.progress.segments import Segment
from coordinator.progress.slices import Slice
from coordinator.tools.operations.plane import Plane, PlaneLane
from coordinator.tools.operations.plane_text import rows
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition

TP = TopicPartition("orders", 0)
LOW, HIGH = cuts(2)


def plane(*lanes: PlaneLane, **more: tuple[FailingRecord, ...] | tuple[Slice, ...]) -> Plane:
    return Plane(TP, lanes, 20, **more)  # type: ignore[arg-type]


def texts(seen: Plane, height: int) -> list[str]:
    return ["".join(characters for characters, _ in row) for row in rows(seen, 20, height)]


BEHIND = PlaneLane(Segment(LOW, 5, (OffsetRange(8, 10),)), "b")
AHEAD = PlaneLane(Segment(HIGH, 15), "a")


def test_each_lane_is_a_row__the_highest_hash_on_top() -> None:
    seen = plane(BEHIND, AHEAD, working=(Slice(TP, LOW, OffsetRange(5, 7)), Slice(TP, HIGH, OffsetRange(15, 17))))
    assert texts(seen, 2) == ["█" * 15 + "▒" * 2 + "·" * 3, "█" * 5 + "▒▒/██" + "/" * 5 + "·" * 5]
    assert rows(seen, 20, 2)[0] == [("█" * 15, 0), ("▒" * 2, 0), ("·" * 3, None)]
    assert [owner for _, owner in rows(seen, 20, 2)[1]] == [1, 1, None, 1, None, None]


def test_wide_lanes_get_the_rows_that_are_left() -> None:
    thin, *wide = HIGH.cut([HIGH.lo + 2**40])
    lanes = (BEHIND, PlaneLane(Segment(thin, 12), None), PlaneLane(Segment(wide[0], 15), None))
    assert [row.count("█") for row in texts(plane(*lanes), 6)] == [15, 15, 12, 7, 7, 7]


def test_lanes_that_share_a_row_are_shown_by_the_one_furthest_behind() -> None:
    lanes = tuple(PlaneLane(Segment(h, 10 - n), None) for n, h in enumerate(cuts(4)))
    assert [row.count("█") for row in texts(plane(*lanes), 2)] == [7, 9]


def test_a_failing_key_is_marked_at_its_record() -> None:
    failing = tuple(
        FailingRecord(TP, lane.lo, offset, 1, 0, parked, "E", "m")
        for lane, offset, parked in ((LOW, 5, True), (HIGH, 19, False))
    )
    high, low = texts(plane(BEHIND, AHEAD, failing=failing), 2)
    assert (high.index("o"), low.index("X")) == (19, 5)
