"""The ranges that a member releases for an assignment, and their next owners; compared with sets of cells."""

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.rebalance import difference, owned_ranges, union
from coordinator.progress.ownership import Owned
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange
from coordinator.values.subscription import TopicPartition

TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
LOWER, UPPER = cuts(2)
CELLS = 12
FIRST = HASH_MAX - CELLS + 1  # at the upper end, where a bound can run over

Cell = tuple[TopicPartition, int]


def span(a: int, b: int) -> HashRange:
    return HashRange(FIRST + min(a, b), FIRST + max(a, b))


any_ranges = st.lists(st.builds(span, st.integers(0, CELLS - 1), st.integers(0, CELLS - 1)), max_size=5)
disjoint = st.sets(st.integers(0, CELLS - 1)).map(lambda cells: union(span(c, c) for c in cells))
some_ranges = st.dictionaries(st.sampled_from([TP, OTHER]), disjoint)
touching = st.sets(st.integers(0, CELLS)).map(
    lambda bounds: tuple(span(lo, hi - 1) for lo, hi in pairwise(sorted(bounds)))
)


def hashes_of(ranges: Iterable[HashRange]) -> set[int]:
    return {h for r in ranges for h in range(r.lo, r.hi + 1)}


def cells_of(ranges: Ranges) -> set[Cell]:
    return {(tp, h) for tp, of_tp in ranges.items() for h in hashes_of(of_tp)}


@given(any_ranges)
def test_joined_ranges_are_the_same_hashes_in_the_fewest_ranges(ranges: list[HashRange]) -> None:
    result = union(ranges)
    assert hashes_of(result) == hashes_of(ranges)
    assert all(left.hi + 1 < right.lo for left, right in pairwise(result))


@given(some_ranges, some_ranges)
def test_beyond_is_the_difference_of_the_cells(some: Ranges, other: Ranges) -> None:
    result = difference(some, other)
    assert cells_of(result) == cells_of(some) - cells_of(other)
    assert all(left.hi < right.lo for of_tp in result.values() for left, right in pairwise(of_tp))
    assert () not in result.values()


@given(touching, any_ranges)
def test_beyond_takes_ranges_that_touch_and_others_that_overlap(
    some: tuple[HashRange, ...], other: list[HashRange]
) -> None:
    result = difference({TP: some}, {TP: tuple(other)})
    assert cells_of(result) == cells_of({TP: some}) - cells_of({TP: tuple(other)})


def test_owned_ranges_of_different_lane_epochs_are_joined_into_one() -> None:
    assert owned_ranges({TP: (Owned(LOWER, "a.1"), Owned(UPPER, "a.2")), OTHER: ()}) == {TP: (WHOLE,)}
