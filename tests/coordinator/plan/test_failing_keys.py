"""Failing keys are planned at their time, one record each (rule: one-record-at-its-time).

The oracle is the plane itself: a set of points (offset, hash).
"""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan.failing_keys import Apart, apart, by_partition, of_slices, together
from coordinator.plan.planning import OwnedRange
from coordinator.progress.failing import FailingRecord
from coordinator.progress.slices import Slice
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

TP, OTHER = TopicPartition("orders", 3), TopicPartition("orders", 4)
END, NOW, LONGEST = 20, 1_000, 500
KEYS = (0, 1, 5, 6, 2**62, HASH_MAX - 1, HASH_MAX)
"""Hashes with neighbours, and both ends of the hash space."""


def record(key_hash: int, offset: int, next_ms: int = NOW, *, parked: bool = False) -> FailingRecord:
    return FailingRecord(TP, key_hash, offset, 1, next_ms, parked)


def owned(lo: int, hi: int, position: int, ceiling: int | None = None) -> OwnedRange:
    return OwnedRange(HashRange(lo, hi), position, "e.1", ceiling)


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


def test_other_partitions_are_not_touched() -> None:
    work = {TP: (OwnedRange(WHOLE, 3, "e.1"),), OTHER: (OwnedRange(WHOLE, 4, "e.1"),)}
    found = apart(work, [record(5, 3, NOW + 1)], NOW, LONGEST, 1)
    assert found.work == {TP: (), OTHER: work[OTHER]}
    assert apart({OTHER: work[OTHER]}, [record(5, 3)], NOW, LONGEST, 1) == Apart({OTHER: work[OTHER]}, {}, ())


def test_a_task_knows_the_failing_records_that_it_reads() -> None:
    records = [record(5, 7), record(6, 8), replace(record(1, 7), tp=OTHER)]
    known = by_partition(records)
    assert of_slices(known, [Slice(TP, HashRange(5, 6), OffsetRange(0, 8))]) == (records[0],)
    assert of_slices(known, [Slice(TP, HashRange(5, 5), OffsetRange(8, 9))]) == ()
    assert of_slices(known, [Slice(OTHER, WHOLE, OffsetRange(7, 8))]) == (records[2],)
