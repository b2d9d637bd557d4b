"""Packs slices into tasks: the longest first, each into the task with the least work. Pure.

It uses the slices alone, so a replay packs the same batch in the same way. A task is a tuple of slices.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import heappush, heapreplace
from itertools import chain, groupby
from math import ceil
from operator import attrgetter
from typing import NamedTuple

from coordinator.plan.joined_topics import Joined, unit
from coordinator.progress.slices import Slice, weight
from coordinator.values.ranges import OffsetRange

Task = tuple[Slice, ...]
Work = Callable[[Slice], float]
"""The work of a slice: records, or milliseconds if costs are known."""

_Weighed = tuple[Slice, float]
ROUNDING = 1e-9
"""Sums of work are as exact as this."""

LITTLE = 16
"""A partition with less than this part of a task's share is read by one task."""


class _Bundle(NamedTuple):
    """Slices that must stay together, with their work. Numbered in the order of partitions and hashes."""

    work: float
    number: int
    slices: Task


_Load = list[_Bundle]
_offset_order = attrgetter("topic_partition", "offsets.start", "hashes.lo")
_hash_order = attrgetter("hashes", "topic_partition", "offsets")


def pack(
    slices: Sequence[Slice],
    *,
    tasks: int,
    max_weight: float | None = None,
    work: Work = attrgetter("weight"),
    joined: Joined = (),
    in_order: Collection[str] = (),
) -> tuple[Task, ...]:
    """The tasks that read `slices`, the task with most `work` first. None is empty.

    There are about `tasks` of them: more if `max_weight` limits a task, fewer if there are not as many slices. Slices
    that share a hash of a partition are in one task (rule: one-task-per-hash), and so are those that share a hash of
    `joined` topics (rule: joined-topics). In each task the slices of a partition are in offset order. A task is heavier
    than `max_weight` only if it is a single slice, or slices that must stay together.

    Slices of a topic `in_order` stay together with all others of their partition (rule: partition-order).
    """
    weighed = [(s, work(s)) for s in _by_units(slices, joined)]
    little = 0.0 if max_weight is not None else _sum(weighed) / (tasks * LITTLE)
    found = enumerate(_bundles(weighed, little, joined, in_order))
    bundles = [_Bundle(_sum(bundle), number, tuple(s for s, _ in bundle)) for number, bundle in found]
    loads = _gathered(_longest_first(bundles, min(tasks, len(bundles)), max_weight))  # more tasks would be empty
    most_first = sorted(filter(None, loads), key=lambda load: (-sum(b.work for b in load), [b.number for b in load]))
    return tuple(tuple(sorted(chain.from_iterable(b.slices for b in load), key=_offset_order)) for load in most_first)


def pack_offsets(slices: Iterable[Slice], *, tasks: int, max_offsets: int | None, work: Work) -> tuple[Task, ...]:
    """The tasks that read slices of a group without order: each about the same work, whatever its keys.

    A task reads neighbouring offsets, so it fetches few record batches that another task fetches too. There are about
    `tasks` of them: more if `max_offsets` limits a task, fewer if there are fewer offsets.
    """
    ordered = sorted(slices)
    if max_offsets is not None:
        tasks = max(tasks, -(-sum(len(s.offsets) for s in ordered) // max_offsets))
    share = sum(map(work, ordered)) / tasks
    packed, done, limit, left = [list[Slice]()], 0.0, share, max_offsets
    for s in ordered:
        each, start = work(s) / len(s.offsets), s.offsets.start
        while start < s.offsets.until:
            full = done >= limit - ROUNDING * share
            if packed[-1] and (full or left == 0):
                packed.append([])
                limit, left = limit + share * full, max_offsets
            most = ceil((limit - done) / each - ROUNDING)
            until = start + max(1, min(s.offsets.until - start, most, most if left is None else left))
            packed[-1].append(s._replace(offsets=OffsetRange(start, until)))
            done, left = done + each * (until - start), left and left - (until - start)
            start = until
    return tuple(tuple(task) for task in packed if task)


def _sum(weighed: Iterable[_Weighed]) -> float:
    return sum(work for _, work in weighed)


def _by_units(slices: Iterable[Slice], joined: Joined) -> list[Slice]:
    """The slices in an order in which those of a unit are neighbours."""
    return sorted(slices, key=lambda s: (unit(s.topic_partition, joined), s)) if joined else sorted(slices)


def _bundles(
    weighed: Iterable[_Weighed], little: float, joined: Joined, in_order: Collection[str]
) -> Iterator[list[_Weighed]]:
    """The slices that stay together; a unit is a partition, or those of `joined` topics with one number.

    All slices of a unit with little work stay together: it is then fetched once. Else slices of one unit whose hashes
    overlap, directly or through others. A single offset is little work at any cost: only one of its lanes can have the
    record.
    """
    for _, found in groupby(weighed, key=lambda w: unit(w[0].topic_partition, joined)):
        of_unit = list(found)
        ends = {(s.topic_partition, offset) for s, _ in of_unit for offset in (s.offsets.start, s.offsets.until - 1)}
        ordered = any(s.topic_partition.topic in in_order for s, _ in of_unit)
        if _sum(of_unit) <= little or len(ends) == 1 or ordered:
            yield of_unit
        else:
            yield from _chained(sorted(of_unit, key=lambda w: _hash_order(w[0])))


def _chained(of_unit: Iterable[_Weighed]) -> Iterator[list[_Weighed]]:
    bundle: list[_Weighed] = []
    highest = -1
    for s, its_work in of_unit:
        if bundle and s.hashes.lo > highest:
            yield bundle
            bundle = []
        bundle.append((s, its_work))
        highest = max(highest, s.hashes.hi)
    yield bundle


def _longest_first(bundles: Iterable[_Bundle], tasks: int, max_weight: float | None) -> list[_Load]:
    loads: list[_Load] = [[] for _ in range(tasks)]
    least = [(0.0, number) for number in range(tasks)]  # a heap: work, and number of the task
    for bundle in sorted(bundles, key=lambda b: (-b.work, b.number)):
        total, number = least[0]
        both = (*loads[number], bundle)
        if max_weight is not None and len(both) > 1 and sum(weight(b.slices) for b in both) > max_weight:
            number = len(loads)
            loads.append([])
            heappush(least, (bundle.work, number))
        else:
            heapreplace(least, (total + bundle.work, number))
        loads[number].append(bundle)
    return loads


def _gathered(loads: Sequence[_Load]) -> list[_Load]:
    """The same loads, with neighbours together. Bundles of equal work change places at no cost.

    A partition that fewer tasks read is fetched fewer times.
    """
    pools: defaultdict[float, _Load] = defaultdict(list)
    for bundle in chain.from_iterable(loads):
        pools[bundle.work].append(bundle)
    in_order = {work: iter(sorted(pool, key=attrgetter("number"))) for work, pool in pools.items()}
    return [[next(in_order[bundle.work]) for bundle in load] for load in loads]
