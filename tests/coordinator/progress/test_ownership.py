"""Facts that a member may commit, and those that it may assert without the fence (rule: assert-beginnings)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.progress.leader_epochs import Extent
from coordinator.progress.ownership import (
    Fact,
    Owned,
    asserted,
    completed,
    facts_below,
    held,
    narrowed,
    remaining,
)
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

TP = TopicPartition("t", 0)
LOWER, UPPER = cuts(2)
Q0, Q1, Q2, Q3 = cuts(4)


def offset(*lanes: Lane) -> StreamOffset:
    return StreamOffset("g", "m", 0, {"t": "id"}, {TP: lanes})


def test_a_verdict_is_for_the_parts_of_a_lane_that_are_owned_at_its_epoch() -> None:
    lane = Lane(WHOLE, "a.1", 5)
    owned = (Owned(Q0, "a.1"), Owned(Q1, "a.2"), Owned(Q3, "a.1"))
    assert held(lane, owned) == (Q0, Q3)


def test_narrowing_an_offset_keeps_owned_lanes_and_drops_empty_partitions() -> None:
    end = offset(Lane(LOWER, "a.1", 5, (OffsetRange(5, 9),)))
    assert narrowed(end, {TP: (Owned(Q1, "a.1"),)}) == offset(Lane(Q1, "a.1", 5, (OffsetRange(5, 9),)))
    assert narrowed(end, {TP: (Owned(Q1, "a.9"),)}).lanes == {}


def test_a_completed_offset_commits_the_end_of_each_lane_at_its_epoch() -> None:
    end = offset(Lane(LOWER, "a.1", 5, (OffsetRange(5, 9),)), Lane(UPPER, "a.2", 7))
    assert completed(end) == {TP: (Fact(LOWER, 9, "a.1"), Fact(UPPER, 7, "a.2"))}


def test_without_a_witness_only_the_beginning_of_a_slice_is_asserted() -> None:
    end = offset(Lane(WHOLE, "a.1", 5, (OffsetRange(5, 9),)))
    assert asserted(end, None) == {TP: (Fact(WHOLE, 5),)}


def test_the_end_of_a_slice_is_asserted_where_this_process_authorised_it_and_only_there() -> None:
    end = offset(Lane(WHOLE, "a.1", 5, (OffsetRange(5, 9),)))
    assert asserted(end, {TP: (Owned(LOWER, "a.1"),)}) == {TP: (Fact(LOWER, 9), Fact(UPPER, 5))}


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        pytest.param(9, Fact(WHOLE, 9), id="a log that ends below the position"),
        pytest.param(10, Fact(WHOLE, 10), id="at the position"),
        pytest.param(13, Fact(WHOLE, 10, offsets=(OffsetRange(12, 13),)), id="within a done range"),
        pytest.param(15, Fact(WHOLE, 10, offsets=(OffsetRange(12, 14),)), id="between two of them"),
        pytest.param(99, Fact(WHOLE, 10, offsets=(OffsetRange(12, 14), OffsetRange(20, 22))), id="behind them all"),
    ],
)
def test_facts_below_the_end_of_their_records(end: int, expected: Fact) -> None:
    fact = Fact(WHOLE, 10, offsets=(OffsetRange(12, 14), OffsetRange(20, 22)))
    other = TopicPartition("t", 1)
    extents = {TP: Extent(4, end), TopicPartition("t", 2): Extent(4, 1)}
    assert facts_below({TP: (fact,), other: (fact,)}, extents) == {TP: (expected,), other: (fact,)}


def test_the_rest_of_an_offset_has_what_is_not_done_yet() -> None:
    end = offset(Lane(LOWER, "a.1", 5, (OffsetRange(5, 9), OffsetRange(12, 20))), Lane(UPPER, "a.2", 7))
    done = Progress((Segment(Q0, 6, (OffsetRange(8, 13),)), Segment(Q1, 30), Segment(UPPER, 0)))
    assert remaining(end, {TP: done}) == offset(
        Lane(Q0, "a.1", 5, (OffsetRange(6, 8), OffsetRange(13, 20))), Lane(Q1, "a.1", 5), Lane(UPPER, "a.2", 7)
    )
    assert remaining(end, {}) == end


EDGES = st.lists(st.integers(0, 30), min_size=2, max_size=8, unique=True).map(sorted)


def offsets_of(edges: list[int]) -> tuple[OffsetRange, ...]:
    return tuple(OffsetRange(a, b) for a, b in list(pairwise(edges))[::2])


@given(EDGES, EDGES, st.integers(0, 30))
def test_a_point_remains_exactly_if_it_was_there_and_is_not_done(read: list[int], ics: list[int], at: int) -> None:
    lane = Lane(LOWER, "a.1", read[0], offsets_of(read))
    done = {TP: Progress((Segment(Q0, at).add(offsets_of(ics)), Segment(HashRange(Q0.hi + 1, WHOLE.hi), 0)))}
    left = remaining(offset(lane), done)

    def points(of: StreamOffset) -> set[tuple[int, int]]:
        return {(h, o) for s in of.slices for h in (0, Q0.hi + 1) if h in s.hashes
                for o in range(s.offsets.start, s.offsets.until)}  # fmt: skip

    is_done = {(0, o) for o in range(at)} | {(0, o) for r in offsets_of(ics) for o in range(r.start, r.until)}
    assert points(left) == points(offset(lane)) - is_done
