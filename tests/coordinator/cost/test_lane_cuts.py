"""Where lanes are cut by cost, and where cuts go again: the decision as a table of cases."""

import pytest

from coordinator.cost.lane_cuts import Cuts, LaneWork, fewer, more
from coordinator.cost.profile import Cell
from coordinator.key_hash import cuts
from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition
from coordinator.telemetry import KeyCost

TP = TopicPartition("t", 0)
A, B, C, D = cuts(4)
KEY = B.lo + 1_000


def lane(
    hashes: HashRange, work_ms: float, record_ms: float = 1.0, *, keys: dict[int, float] | None = None, **more: bool
) -> LaneWork:
    costs = tuple(KeyCost(k, ms, 1) for k, ms in (keys or {}).items())
    return LaneWork((TP, hashes), Cell(hashes, 0.25, record_ms, sure=True), work_ms, costs, **more)


def decided(lanes: list[LaneWork], *, exact: bool = True, slots: int = 4, healthy_ms: float = 1.0) -> set[int]:
    return set(more({}, lanes, slots=slots, healthy_ms=healthy_ms, exact=exact).cuts.get(TP, ()))


EVEN = [lane(h, 1_000) for h in (A, C, D)]


@pytest.mark.parametrize(
    ("lanes", "exact", "expected"),
    [
        pytest.param([lane(B, 1_000), *EVEN], True, set(), id="slots that end together are left alone"),
        pytest.param([lane(B, 90), *(lane(h, 90) for h in (A, C))], True, set(), id="little work is not worth a cut"),
        pytest.param(
            [lane(B, 5_000, keys={KEY: 4_500.0, KEY + 9: 10.0}), *EVEN],
            True,
            {KEY, KEY + 1},
            id="a key that is most of a lane's work gets a lane of its own",
        ),
        pytest.param(
            [lane(HashRange(KEY, KEY), 5_000, keys={KEY: 5_000.0}), *EVEN],
            True,
            set(),
            id="a key that is alone cannot be cut",
        ),
        pytest.param(
            [lane(B, 3_000), *EVEN], True, {B.lo + B.size // 2}, id="the heaviest lane of the fullest slot is halved"
        ),
        pytest.param(
            [lane(B, 3_000, record_ms=30.0, short=True), *EVEN],
            False,
            {B.lo + B.size // 2},
            id="a slow lane whose keys are not known is parted in the middle",
        ),
        pytest.param(
            [lane(B, 3_000, record_ms=30.0), *EVEN], False, set(), id="... but not while it keeps up"
        ),
        pytest.param(
            [lane(B, 3_000, record_ms=30.0, short=True, alone=True), *EVEN],
            False,
            set(),
            id="... nor once its key is alone in it",
        ),
        pytest.param(
            [lane(HashRange(KEY, KEY), 3_000, record_ms=30.0, short=True), *EVEN],
            False,
            set(),
            id="... nor where it is a single hash",
        ),
    ],
)  # fmt: skip
def test_cuts_are_added(lanes: list[LaneWork], exact: bool, expected: set[int]) -> None:
    assert decided(lanes, exact=exact) == expected


def test_the_halves_of_a_parted_lane_are_named_for_the_search() -> None:
    slow = lane(B, 3_000, record_ms=30.0, short=True)
    decision = more({}, [slow, *EVEN], slots=4, healthy_ms=1.0, exact=False)
    middle = B.lo + B.size // 2
    assert decision.parted == slow
    assert decision.halves == ((TP, HashRange(B.lo, middle - 1)), (TP, HashRange(middle, B.hi)))


def test_a_lane_is_cut_where_its_work_halves() -> None:
    """Two keys low in the lane are most of it: the cut is near them, not in the middle."""
    heavy = lane(B, 4_000, keys={B.lo + 10: 1_900.0, B.lo + 20: 1_900.0})
    (bound,) = decided([heavy, *EVEN])
    assert B.lo + 10 < bound < B.lo + B.size // 2


def test_a_partition_has_a_bounded_number_of_lanes() -> None:
    full: Cuts = {TP: frozenset(range(1, 40))}
    assert more(full, [lane(B, 3_000), *EVEN], slots=4, healthy_ms=1.0, exact=True).cuts == full


CUT: Cuts = {TP: frozenset({B.lo})}


@pytest.mark.parametrize(
    ("lanes", "merged"),
    [
        pytest.param([lane(A, 10), lane(B, 10), lane(C, 2_000)], True, id="cold neighbours that are alike merge"),
        pytest.param([lane(A, 10), lane(B, 10, record_ms=9.0), lane(C, 2_000)], False, id="a slow one stays alone"),
        pytest.param([lane(A, 600), lane(B, 600), lane(C, 600)], False, id="warm neighbours stay cut"),
        pytest.param([lane(A, 600), lane(B, 5), lane(C, 2_000)], True, id="a key that is slow no more goes back"),
        pytest.param([lane(A, 600), lane(B, 5, record_ms=9.0), lane(C, 2_000)], False, id="one that is slow does not"),
        pytest.param([lane(A, 2_000), lane(B, 5), lane(C, 600)], False, id="a lane that is full takes nothing"),
        pytest.param([lane(A, 10), lane(C, 2_000)], False, id="lanes that do not touch at the cut do not merge"),
    ],
)
def test_cuts_go_again(lanes: list[LaneWork], merged: bool) -> None:
    assert (fewer(CUT, lanes, slots=4) == {}) == merged
