"""Shares the work that waits among tasks: cuts partitions in lanes, so that no task has much more than another. Pure.

    work    |-- orders-0 ------------------|-- orders-1 --|o-2|-- orders-3 --|     all partitions in a row, by hash
    tasks   |            |            |            |            |                  cut where a task has its share

Partitions that are even enough stay whole. A slow key, or one that is much of the work, has a lane of its own.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapreplace
from itertools import groupby
from math import ceil
from typing import NamedTuple

from coordinator.values.ranges import HASH_MAX, HashRange
from coordinator.values.subscription import TopicPartition

UNEVEN = 1.05
"""Cut anew if the heaviest task has this many times its share ..."""

VERY_UNEVEN = 1.4
"""... or this many, soon after another change."""

FOR_OTHERS = 0.75
"""The least part of the tasks for keys that are not slow."""

LEAST = 1 / 32
"""A lane with less than this part of a task's share is not cut off."""

FINEST = (HASH_MAX + 1) // 4_096
"""A lane of fewer hashes is not cut by its work: it may have one key."""

LaneBounds = Mapping[TopicPartition, tuple[int, ...]]
"""The first hashes of the lanes of each partition but the first lane; partitions without any stay whole."""


class Piece(NamedTuple):
    """Hashes of a partition whose records are alike, and the work that waits there, in records or milliseconds."""

    hashes: HashRange
    work: float
    slow: bool = False

    def stands_out(self, share: float, least: float) -> bool:
        """Whether it has a lane of its own, if a task has such a share of all work, and less than `least` is little."""
        return self.slow or (self.hashes.size <= FINEST and self.work > max(share / 2, least))


Pieces = Mapping[TopicPartition, Sequence[Piece]]


def shared(pieces: Pieces, tasks: int, before: LaneBounds, *, soon: bool, least: float = 0.0) -> LaneBounds:
    """The bounds of lanes that give each of so many tasks about the same work, give or take `least`.

    The bounds `before` stay while they are even enough; only if they are few, except `soon` after a change.
    """
    total = sum(p.work for of_tp in pieces.values() for p in of_tp)
    if not total:
        return before
    alone = {tp: [p for p in of_tp if p.stands_out(total / tasks, least)] for tp, of_tp in pieces.items()}
    others = {tp: [p for p in of_tp if not p.stands_out(total / tasks, least)] for tp, of_tp in pieces.items()}
    tasks = _for_others(alone, total / tasks, tasks)
    share = sum(p.work for of_tp in others.values() for p in of_tp) / tasks
    apart = {tp: {first for p in of_tp for first in p.hashes.edges} for tp, of_tp in alone.items()}
    new = _joined(apart, _in_a_row(pieces, alone, share))
    whole, kept = _joined(apart, {}), _joined(apart, before)
    may_stay = (kept, whole) if soon or _count(kept) <= _count(new) else (whole,)
    most = max(share + least, share * (VERY_UNEVEN if soon else UNEVEN))
    return next((bounds for bounds in may_stay if _heaviest(others, bounds, tasks) <= most), new)


def _for_others(alone: Pieces, share: float, tasks: int) -> int:
    """The tasks beside those that lanes of their own fill."""
    filled = sum(round(p.work / share) for of_tp in alone.values() for p in of_tp)
    return max(1, ceil(FOR_OTHERS * tasks), tasks - filled)


def _in_a_row(pieces: Pieces, alone: Pieces, share: float) -> LaneBounds:
    """Cut where the work in a row is a multiple of a task's share; lanes that are `alone` are not in the row."""
    so_far, bounds = 0.0, defaultdict[TopicPartition, tuple[int, ...]](tuple)
    for tp, of_tp in sorted(pieces.items()):
        for apart, run in groupby(of_tp, alone[tp].__contains__) if share else ():
            if not apart:
                together = tuple(run)
                bounds[tp] += tuple(_cuts(together, share, so_far))
                so_far = (so_far + sum(p.work for p in together)) % share
    return bounds


def _cuts(run: Sequence[Piece], share: float, so_far: float) -> Iterator[int]:
    """Where a task has its share, if it has `so_far` of it before the run."""
    at, before, least = share - so_far, 0.0, LEAST * share
    last = sum(p.work for p in run) - least
    for p in run:
        while at < min(last, before + p.work):
            if at > least:
                yield p.hashes.lo + round(p.hashes.size * ((at - before) / p.work))
            at += share
        before += p.work


def _joined(some: Mapping[TopicPartition, Collection[int]], others: LaneBounds) -> LaneBounds:
    """The bounds of both, for the partitions of `some`; partitions without any are left out."""
    both = {tp: tuple(sorted({*bounds, *others.get(tp, ())})) for tp, bounds in some.items()}
    return {tp: bounds for tp, bounds in both.items() if bounds}


def _count(bounds: LaneBounds) -> int:
    return sum(map(len, bounds.values()))


def _heaviest(pieces: Pieces, bounds: LaneBounds, tasks: int) -> float:
    """The work of the heaviest task, if lanes are packed longest first."""
    loads = [0.0] * tasks
    works = (work for tp, of_tp in pieces.items() for work in _works(of_tp, bounds.get(tp, ())))
    for work in sorted(works, reverse=True):
        heapreplace(loads, loads[0] + work)
    return max(loads)


def _works(of_tp: Iterable[Piece], bounds: tuple[int, ...]) -> Iterable[float]:
    """The work of each lane of a partition."""
    works: defaultdict[int, float] = defaultdict(float)
    for p in of_tp:
        for h in p.hashes.cut(bounds) if bounds else (p.hashes,):
            works[bisect_right(bounds, h.lo)] += p.work * h.size / p.hashes.size
    return works.values()
