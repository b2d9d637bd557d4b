"""Finds offsets of a batch that several of its tasks read, so that a host may fetch them once. Pure.

Executors decide how tasks share fetched records.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import pairwise
from operator import attrgetter

from coordinator.progress.slices import Slice, merged
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import HashRange, OffsetRange, union
from coordinator.values.subscription import TopicPartition

WORTH_IT = 10
"""A stretch with fewer offsets is fetched by each task.

For ten records of 100 bytes, two tasks that share take as long as two that fetch. Eight tasks that share take half
the CPU time, but records may be large.
"""

MOST_PARTS = 512
"""The most parts of a partition. With more lanes, each has few records in a block."""

MOST_STRETCHES = 100
"""The most stretches of a partition, the longest first. They travel to every task."""


@dataclass(frozen=True, slots=True)
class SharedStretch:
    """Offsets that the same tasks read, each task other hashes of them; and the number of these tasks.

    Its parts are the hashes that they read, ascending and disjoint. At each offset a task reads all of a part, or
    nothing of it.
    """

    offsets: OffsetRange
    readers: int
    parts: tuple[HashRange, ...]


SharedStretches = Mapping[TopicPartition, tuple[SharedStretch, ...]]


def shared_stretches(tasks: Sequence[Iterable[Slice]]) -> SharedStretches:
    """For each partition the offsets that at least two of `tasks` read, ascending and disjoint.

    They are cut where a task begins or ends. So a task reads all of a stretch, or nothing of it. No hash of a
    partition is in two tasks.

        task 1   |===================|
        task 2          |===================|
        task 3          |============|
        shared          |  3 tasks   |              the rest has one reader
    """
    reads: dict[TopicPartition, list[list[Slice]]] = {}
    for task in tasks:
        of_task: dict[TopicPartition, list[Slice]] = {}
        for s in task:
            of_task.setdefault(s.topic_partition, []).append(s)
        for tp, slices in of_task.items():
            reads.setdefault(tp, []).append(slices)
    few = {tp: tasks for tp, tasks in reads.items() if len(tasks) > 1 and sum(map(len, tasks)) <= MOST_PARTS}
    longest = {
        tp: nlargest(MOST_STRETCHES, _shared(tasks), key=lambda stretch: len(stretch.offsets))
        for tp, tasks in few.items()
    }
    return {tp: tuple(sorted(found, key=attrgetter("offsets"))) for tp, found in longest.items() if found}


def _shared(tasks: Sequence[Sequence[Slice]]) -> Iterator[SharedStretch]:
    once: dict[HashRange, HashRange] = {}  # a part is in many stretches, which travel to every task
    whole = [union(s.offsets for s in task) for task in tasks]
    steps = sorted({edge for offsets in whole for r in offsets for edge in (r.start, r.until)})
    for start, until in pairwise(steps):
        if until - start < WORTH_IT:
            continue
        readers = sum(any(r.start <= start < r.until for r in offsets) for offsets in whole)
        if readers > 1:
            offsets = OffsetRange(start, until)
            yield SharedStretch(offsets, readers, tuple(once.setdefault(p, p) for p in _parts(tasks, offsets)))


def _parts(tasks: Iterable[Iterable[Slice]], offsets: OffsetRange) -> Iterator[HashRange]:
    """The hashes between any two ends of lanes, if a task reads them."""
    within = (merged(filter(None, (s.within(offsets) for s in task))) for task in tasks)
    lanes = {s.hashes for task in within for s in task}
    return (hashes for hashes, _ in HashMap.stacked((lane, None) for lane in lanes))
