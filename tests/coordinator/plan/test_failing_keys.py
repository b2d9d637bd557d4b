"""Failing keys are planned at their time, one record each (rule: one-record-at-its-time).

The oracle is the plane itself: a set of points (offset, hash).
"""

from dataclasses import replace

from coordinator.plan.failing_keys import Apart, apart, by_partition, of_slices
from coordinator.plan.planning import OwnedRange
from coordinator.progress.failing import FailingRecord
from coordinator.progress.slices import Slice
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

TP, OTHER = TopicPartition("orders", 3), TopicPartition("orders", 4)
END, NOW, LONGEST = 20, 1_000, 500


def record(key_hash: int, offset: int, next_ms: int = NOW, *, parked: bool = False) -> FailingRecord:
    return FailingRecord(TP, key_hash, offset, 1, next_ms, parked)


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
