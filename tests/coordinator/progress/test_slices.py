"""Slices: rectangles of offsets and hashes, against sets of their points."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.progress.slices import Slice, begun, merged, weight
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

TP = TopicPartition("orders", 3)
PAIRS = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted)
SLICES = st.builds(lambda o, h: Slice(TP, HashRange(*h), OffsetRange(o[0], o[1] + 1)), PAIRS, PAIRS)


def points(slices: list[Slice] | tuple[Slice, ...]) -> set[tuple[int, int]]:
    return {
        (offset, h)
        for s in slices
        for offset in range(s.offsets.start, s.offsets.until)
        for h in range(s.hashes.lo, s.hashes.hi + 1)
    }


@given(st.lists(SLICES))
def test_merged_slices_hold_the_same_points(slices: list[Slice]) -> None:
    made = merged(slices)
    assert points(made) == points(slices)
    assert len(made) <= len(slices)


def test_lanes_with_the_same_offsets_that_tile_the_space_become_one_slice() -> None:
    offsets = OffsetRange(5, 9)
    lanes = [Slice(TP, hashes, offsets) for hashes in WHOLE.cut([100, 1_000])]
    assert merged(lanes[::-1]) == (Slice(TP, WHOLE, offsets),)


@given(SLICES, PAIRS)
def test_a_part_of_a_slice_holds_its_points_within_the_offsets(s: Slice, pair: list[int]) -> None:
    part = s.within(offsets := OffsetRange(pair[0], pair[1] + 1))
    held = {(o, h) for o, h in points([s]) if offsets.start <= o < offsets.until}
    assert points([part] if part else []) == held


def test_a_weight_is_offsets_by_share_of_the_hash_space() -> None:
    half = Slice(TP, HashRange(0, HASH_MAX // 2), OffsetRange(0, 10))
    assert half.weight == 5
    assert weight([half, half._replace(hashes=WHOLE)]) == 15


def test_a_slice_names_its_lane_topic_and_partition() -> None:
    s = Slice(TP, WHOLE, OffsetRange(0, 1))
    assert (s.lane, s.topic, s.partition) == ((TP, WHOLE), "orders", 3)


@pytest.mark.parametrize("after", ["", " one"])
def test_the_slices_that_tasks_are_at__those_that_nobody_can_read_are_left_out(after: str) -> None:
    good = f"orders 3 {WHOLE} 5-9{after};"
    bad = f"junk;orders 3 {WHOLE} 9-5;orders 3 0-5 5-9;orders x {WHOLE} 5-9;orders 3 {WHOLE} 5-{2**80};"
    assert begun(bad + good) == (Slice(TP, WHOLE, OffsetRange(5, 9)),)
    assert begun("") == ()
