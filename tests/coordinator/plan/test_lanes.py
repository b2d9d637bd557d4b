"""Lanes: enough for the slots, cut by hash, each small enough."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan.lanes import cut_for_records, fixed_lanes
from coordinator.progress.slices import Slice
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition


@pytest.mark.parametrize(
    ("partitions", "lanes", "expected"),
    [
        pytest.param(9, 3, 3, id="a fixed number of lanes is per partition"),
        pytest.param(64, 4_096, 1_024, id="a batch has at most 65,536 lanes, shared by its partitions"),
        pytest.param(10**6, 512, 1, id="more partitions than that have a lane each"),
        pytest.param(0, 3, 3, id="nothing to read is still a valid question"),
    ],
)
def test_fixed_lanes(partitions: int, lanes: int, expected: int) -> None:
    assert fixed_lanes(partitions, lanes) == expected


@pytest.mark.parametrize(
    ("hashes", "offsets", "max_records", "pieces"),
    [
        pytest.param(WHOLE, OffsetRange(0, 10), 10, (WHOLE,), id="a small enough lane stays whole"),
        pytest.param(
            WHOLE,
            OffsetRange(0, 20),
            10,
            (HashRange(0, 2**62 - 1), HashRange(2**62, HASH_MAX)),
            id="twice too many is cut in halves",
        ),
        pytest.param(
            HashRange(0, 2**62 - 1),
            OffsetRange(0, 20),
            10,
            (HashRange(0, 2**62 - 1),),
            id="half of the space holds half of the records",
        ),
        pytest.param(HashRange(7, 7), OffsetRange(0, 2**62), 1, (HashRange(7, 7),), id="a single hash is not cut"),
        pytest.param(
            HashRange(7, 8),
            OffsetRange(0, HASH_MAX),
            1,
            (HashRange(7, 7), HashRange(8, 8)),
            id="two hashes are cut once",
        ),
    ],
)
def test_cut_for_records(
    hashes: HashRange, offsets: OffsetRange, max_records: int, pieces: tuple[HashRange, ...]
) -> None:
    assert cut_for_records(hashes, offsets, max_records, finest=1) == pieces


bounds = st.integers(0, HASH_MAX)


@given(a=bounds, b=bounds, start=bounds, length=st.integers(1, 10**6), max_records=st.integers(1000, 10**7))
def test_pieces_tile_the_range_keep_the_limit_and_are_as_few_as_can_be(
    a: int, b: int, start: int, length: int, max_records: int
) -> None:
    hashes = HashRange(min(a, b), max(a, b))
    start = min(start, HASH_MAX - length)
    offsets = OffsetRange(start, start + length)
    pieces = cut_for_records(hashes, offsets, max_records, finest=1)

    assert pieces[0].lo == hashes.lo
    assert pieces[-1].hi == hashes.hi
    assert all(before.hi + 1 == after.lo for before, after in pairwise(pieces))
    assert all(len(offsets) * p.size <= max_records * 2**63 for p in pieces)
    largest = max_records * 2**63 // len(offsets)
    assert (len(pieces) - 1) * largest < hashes.size
    assert max(p.size for p in pieces) - min(p.size for p in pieces) <= 1
    assert Slice(TopicPartition("t", 0), pieces[0], offsets).weight <= max_records
