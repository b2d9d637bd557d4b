"""What a batch takes whatever is read, told from what its records take: by batches of different size.

    took |            *    *          * batches; what held one up, or is slow, lies above the line
         |       *       __*
         |     __*-----''
         |--*''  *                    the line is the median of those through two of them
         | overhead
         +-------------------- records of the fullest task

Spark's own time, a sink that commits, tasks that start. Pure.
"""

from collections.abc import Sequence
from itertools import combinations
from statistics import median

LOOK_BACK = 16
"""Batches by which it is told."""

FIRST_MS, MOST = 200.0, 0.8
"""So much is believed before anything is known, and never more than this part of the shortest batch."""

WIDE = 1.3
"""Batches whose records differ by less tell nothing."""

FEW = 4
"""So few batches do not tell that it is more than was believed."""

GROWTH, LEAST_MS = 1.5, 100.0
"""From one batch to the next it grows by no more; and is not less than that when it does."""

Point = tuple[float, float]
"""Records of a batch's fullest task, and the milliseconds that the batch took."""


def overhead(batches: Sequence[Point], before_ms: float) -> float:
    """The milliseconds of the last batches that were not for records; `before_ms` where they do not tell.

    It grows slowly, for what is slow may look like it. Never all of what the shortest took: records that cost nothing
    would be read without an end.
    """
    shortest = min(took for _, took in batches)
    met = [_at_zero(a, b) for a, b in combinations(sorted(batches), 2) if b[0] > WIDE * a[0]]
    if len(batches) < FEW:
        return max(0.0, min(before_ms, MOST * shortest, *met))
    found = min(max(0.0, median(met)), GROWTH * max(before_ms, LEAST_MS)) if met else before_ms
    return min(found, MOST * shortest)


def noise(batches: Sequence[Point], overhead_ms: float) -> float:
    """The milliseconds by which half of the last batches took more or less than their records explain."""
    rate = median((took - overhead_ms) / rows for rows, took in batches)
    off = median(abs(took - overhead_ms - rate * rows) for rows, took in batches)
    return min(off, overhead_ms / 3)


def healthy_ms(batches: Sequence[Point], overhead_ms: float, noise_ms: float) -> float | None:
    """What a record takes where none is slow: no more than in any of the batches, as far as they tell."""
    told = [(took - overhead_ms + noise_ms) / rows for rows, took in batches if took > 1.25 * overhead_ms]
    return min(told, default=None)


def _at_zero(a: Point, b: Point) -> float:
    """What a batch without records would take by two others."""
    return a[1] - a[0] * (b[1] - a[1]) / (b[0] - a[0])
