"""Failing keys are planned at their time, one record each (rule: one-record-at-its-time).

The oracle is the plane itself: a set of points (offset, hash).
"""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan.failing_keys import Apart, apart, at_cap, by_partition, of_slices, room, together
from coordinator.plan.planning import OwnedRange, OwnedRanges
from coordinator.progress.failing import FailingRecord
from coordinator.progress.slices import Slice
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

TP, OTHER = TopicPartition("orders", 3), TopicPartition("orders", 4)
END, NOW, LONGEST = 20, 1_000, 500
KEYS = (0, 1, 5, 6, 2**62, HASH_MAX - 1, HASH_MAX)
"""Hashes with neighbours, and both ends of the hash space."""

Point = tuple[int, int]


def record(key_hash: int, offset: int, next_ms: int = NOW, *, parked: bool = False) -> FailingRecord:
    return FailingRecord(TP, key_hash, offset, 1, next_ms, parked)


def owned(lo: int, hi: int, position: int, ceiling: int | None = None) -> OwnedRange:
    return OwnedRange(HashRange(lo, hi), position, "e.1", ceiling)


def points(work: OwnedRanges) -> set[Point]:
    """The points that the work may read, at the hashes of keys."""
    return {(o, h) for p in work.get(TP, ()) for h in KEYS if h in p.hashes for o in range(p.position, p.reach(END))}


@st.composite
def ranges(draw: st.DrawFn) -> tuple[OwnedRange, ...]:
    bounds = sorted({0, *draw(st.sets(st.sampled_from(KEYS[1:]))), HASH_MAX + 1})
    pieces = [owned(lo, until - 1, draw(st.integers(0, 12))) for lo, until in pairwise(bounds)]
    ceilings = st.one_of(st.none(), st.integers(0, 25))
    return tuple(p._replace(ceiling=draw(ceilings)) for p in pieces if draw(st.integers(0, 3)))


RECORDS = st.dictionaries(
    st.sampled_from(KEYS),
    st.tuples(st.integers(0, 15), st.sampled_from((0, NOW, NOW + 1, NOW + LONGEST, NOW + LONGEST + 1)), st.booleans()),
).map(lambda drawn: [record(h, offset, ms, parked=parked) for h, (offset, ms, parked) in drawn.items()])


@given(ranges(), RECORDS, st.integers(1, 9))
def test_a_failing_key_is_read_up_to_its_record_and_all_others_as_before(
    mine: tuple[OwnedRange, ...], records: list[FailingRecord], most: int
) -> None:
    found = apart({TP: mine}, records, NOW, LONGEST, most)
    failing = {r.key_hash: r for r in records}

    def expected(point: Point) -> bool:
        offset, key_hash = point
        (position,) = (p.position for p in mine if key_hash in p.hashes)
        r = failing.get(key_hash)
        if r is None or r.offset < position:
            return len(records) < most
        return offset < r.offset + (not r.parked and not NOW < r.next_ms <= NOW + LONGEST)

    before = points({TP: mine})
    assert points(found.work) == {p for p in before if expected(p)}
    assert points(found.held) == set()


@given(ranges(), RECORDS)
def test_every_owned_hash_stays_in_the_plan_at_its_position(
    mine: tuple[OwnedRange, ...], records: list[FailingRecord]
) -> None:
    found = apart({TP: mine}, records, NOW, LONGEST, 100)
    whole = together(found.work, found.held)[TP]
    assert [p.hashes for p in whole] == sorted(p.hashes for p in whole)
    for key_hash in KEYS:
        now = [(p.position, p.epoch) for p in whole if key_hash in p.hashes]
        assert now == [(p.position, p.epoch) for p in mine if key_hash in p.hashes]
    assert sum(p.hashes.size for p in whole) == sum(p.hashes.size for p in mine)


@given(ranges(), RECORDS)
def test_an_entry_is_over_once_the_position_of_its_hash_has_passed_it(
    mine: tuple[OwnedRange, ...], records: list[FailingRecord]
) -> None:
    over = {r for r in records if any(r.key_hash in p.hashes and p.position > r.offset for p in mine)}
    assert set(apart({TP: mine}, records, NOW, LONGEST, 100).over) == over


@pytest.mark.parametrize(
    ("entry", "position", "reads", "waits"),
    [
        pytest.param(record(5, 7, NOW), 7, (7,), False, id="due: its record alone"),
        pytest.param(record(5, 7, NOW + 1), 7, (), True, id="its time has not come"),
        pytest.param(record(5, 7, NOW + LONGEST), 7, (), True, id="the longest delay"),
        pytest.param(record(5, 7, NOW + LONGEST + 1), 7, (7,), False, id="no delay is so long: a clock was wrong"),
        pytest.param(record(5, 7, NOW + 2 * LONGEST, parked=True), 7, (), True, id="parked, by a clock that was wrong"),
        pytest.param(record(5, 7, 0, parked=True), 7, (), True, id="parked: whatever the time"),
        pytest.param(record(5, 7, NOW + 1), 5, (5, 6), False, id="a position below it: up to the record"),
        pytest.param(record(5, 7, NOW), 5, (5, 6, 7), False, id="... and the record too if it is due"),
    ],
)
def test_one_key(entry: FailingRecord, position: int, reads: tuple[int, ...], waits: bool) -> None:
    found = apart({TP: (OwnedRange(WHOLE, position, "e.1"),)}, [entry], NOW, LONGEST, 10)
    assert sorted(o for o, h in points(found.work) if h == 5) == list(reads)
    assert bool(found.held) == waits
    assert found.due == (frozenset() if waits else {(TP, HashRange(5, 5))})


def test_other_partitions_are_not_touched() -> None:
    work = {TP: (OwnedRange(WHOLE, 3, "e.1"),), OTHER: (OwnedRange(WHOLE, 4, "e.1"),)}
    found = apart(work, [record(5, 3, NOW + 1)], NOW, LONGEST, 1)
    assert found.work == {TP: (), OTHER: work[OTHER]}
    assert apart({OTHER: work[OTHER]}, [record(5, 3)], NOW, LONGEST, 1) == Apart({OTHER: work[OTHER]}, {}, ())


def test_a_partition_at_its_cap() -> None:
    records = [record(h, 7) for h in KEYS[:3]]
    assert at_cap(records, 3) == {TP}
    assert at_cap(records, 4) == frozenset()


def test_a_task_knows_the_failing_records_that_it_reads() -> None:
    records = [record(5, 7), record(6, 8), replace(record(1, 7), tp=OTHER)]
    known = by_partition(records)
    assert of_slices(known, [Slice(TP, HashRange(5, 6), OffsetRange(0, 8))]) == (records[0],)
    assert of_slices(known, [Slice(TP, HashRange(5, 5), OffsetRange(8, 9))]) == ()
    assert of_slices(known, [Slice(OTHER, WHOLE, OffsetRange(7, 8))]) == (records[2],)


@pytest.mark.parametrize(
    ("most", "each"), [(3, 0), (4, 1), (5, 1), (9, 3), pytest.param(2, 0, id="more than the cap, of several members")]
)
def test_the_tasks_of_a_partition_share_the_room_below_its_cap(most: int, each: int) -> None:
    known = by_partition([record(h, 7) for h in KEYS[:3]])
    tasks = [[Slice(TP, h, OffsetRange(0, 8))] for h in WHOLE.cut((2**62,))]
    assert room(known, tasks, most) == {TP: each}
