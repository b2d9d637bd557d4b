"""Lanes by the work that waits: tasks get equal parts, a slow key is alone, lanes change seldom."""

from collections.abc import Sequence
from heapq import heapreplace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan.lane_bounds import UNEVEN, VERY_UNEVEN, LaneBounds, Piece, Pieces, shared
from coordinator.values.key_hash import cut_bound, cuts
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange
from coordinator.values.subscription import TopicPartition

KEY = 1 << 61
ALONE = HashRange(KEY, KEY)
TPS = [TopicPartition("t", i) for i in range(1_000)]


def waiting(*works: float) -> Pieces:
    """So much work in each partition, spread evenly."""
    return {tp: [Piece(WHOLE, work)] for tp, work in zip(TPS, works, strict=False)}


def new(pieces: Pieces, tasks: int) -> LaneBounds:
    return shared(pieces, tasks, {}, soon=False)


def lanes(pieces: Pieces, bounds: LaneBounds) -> list[float]:
    """The work of each lane; a piece that lies in two lanes counts in parts."""
    return [
        sum(p.work * x.size / p.hashes.size for p in of_tp if (x := p.hashes.intersection(h)))
        for tp, of_tp in pieces.items()
        for h in WHOLE.cut(bounds.get(tp, ()))
    ]


def heaviest(works: Sequence[float], tasks: int) -> float:
    loads = [0.0] * tasks
    for work in sorted(works, reverse=True):
        heapreplace(loads, loads[0] + work)
    return max(loads)


@pytest.mark.parametrize(
    ("works", "tasks", "expected"),
    [
        pytest.param([9.0], 4, [4], id="one partition has a lane for each task"),
        pytest.param([5.0] * 8, 8, [1] * 8, id="as many partitions as tasks stay whole"),
        pytest.param([5.0] * 1_000, 8, [1] * 1_000, id="many partitions stay whole"),
        pytest.param([5.0, 4.9, 5.1], 3, [1, 1, 1], id="partitions that are almost even stay whole"),
        pytest.param([5.0] * 3, 2, [1, 2, 1], id="two tasks share the second of three partitions"),
        pytest.param([400_000.0, *[100.0] * 7], 8, [8, *[1] * 7], id="small partitions are read beside a large one"),
        pytest.param([400_000.0, *[100.0] * 7], 16, [16, *[1] * 7], id="minPartitions asks for more tasks"),
        pytest.param([0.0, 9.0], 2, [1, 2], id="a partition without work has no part"),
    ],
)
def test_lanes_of_each_partition(works: list[float], tasks: int, expected: list[int]) -> None:
    pieces = waiting(*works)
    bounds = new(pieces, tasks)
    assert [len(bounds.get(tp, ())) + 1 for tp in pieces] == expected
    assert heaviest(lanes(pieces, bounds), tasks) <= 1.1 * sum(works) / tasks


def test_one_partition_is_cut_evenly() -> None:
    assert new(waiting(9.0), 4) == {TPS[0]: tuple(cut_bound(i, 4) for i in range(1, 4))}


def test_an_owned_half_is_cut_for_all_tasks() -> None:
    """Another application owns the rest."""
    assert new({TPS[0]: [Piece(cuts(2)[0], 9.0)]}, 2) == {TPS[0]: (cut_bound(1, 4),)}


def test_without_work_nothing_is_cut() -> None:
    assert new(waiting(0.0, 0.0), 4) == {}


@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=20), st.integers(1, 16))
def test_no_task_has_much_more_than_its_share(works: list[float], tasks: int) -> None:
    """Lanes are packed longest first, which by itself may miss the best by a third."""
    pieces = waiting(*works)
    of_lanes = lanes(pieces, new(pieces, tasks))
    assert len(of_lanes) <= tasks - 1 + len(works)
    assert heaviest(of_lanes, tasks) <= sum(works) / tasks * 4 / 3


@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=20), st.integers(1, 16))
def test_hashes_with_more_work_are_cut_finer(works: list[float], tasks: int) -> None:
    pieces = {TPS[0]: [Piece(h, work) for h, work in zip(cuts(len(works)), works, strict=True)]}
    assert max(lanes(pieces, new(pieces, tasks))) <= sum(works) / tasks * 1.05


def with_key(work: float, *, slow: bool) -> Pieces:
    """One unit of work in even keys, and a key with so much."""
    below, above = HashRange(0, KEY - 1), HashRange(KEY + 1, HASH_MAX)
    return {TPS[0]: [Piece(below, below.share), Piece(ALONE, work, slow), Piece(above, above.share)]}


@pytest.mark.parametrize(("work", "slow"), [(0.0001, True), (100.0, True), (0.5, False)])
def test_a_key_that_is_slow_or_much_of_the_work_has_its_own_lane(work: float, slow: bool) -> None:
    assert ALONE in WHOLE.cut(new(with_key(work, slow=slow), 4)[TPS[0]])


def test_slow_keys_leave_most_tasks_to_the_others() -> None:
    pieces = with_key(1_000.0, slow=True)
    assert sorted(lanes(pieces, new(pieces, 4)))[-2] <= 1 / 3 * 1.01


def uneven(by: float) -> Pieces:
    """The first quarter has so many times the work that it should have."""
    return {TPS[0]: [Piece(h, w) for h, w in zip(cuts(4), (by, *[(4 - by) / 3] * 3), strict=True)]}


@pytest.mark.parametrize(
    ("by", "soon", "cut"),
    [
        pytest.param(UNEVEN - 0.01, False, False, id="even enough"),
        pytest.param(UNEVEN + 0.05, False, True, id="uneven"),
        pytest.param(UNEVEN + 0.05, True, False, id="uneven, soon after another change"),
        pytest.param(VERY_UNEVEN + 0.1, True, True, id="very uneven"),
    ],
)
def test_lanes_are_cut_anew_where_that_evens_out_the_work(by: float, soon: bool, cut: bool) -> None:
    even = new(uneven(1.0), 4)
    assert (shared(uneven(by), 4, even, soon=soon) != even) == cut


def test_more_lanes_than_tasks_stay_only_soon_after_a_change() -> None:
    eight = new(waiting(1.0), 8)
    assert shared(waiting(1.0), 4, eight, soon=True) == eight
    assert shared(waiting(1.0), 4, eight, soon=False) == new(waiting(1.0), 4)


def test_lanes_are_even_again_once_no_key_stands_out() -> None:
    before = shared(with_key(100.0, slow=True), 4, {}, soon=True)
    assert shared(waiting(1.0), 4, before, soon=False) == new(waiting(1.0), 4)
