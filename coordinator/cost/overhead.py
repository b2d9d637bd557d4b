"""Estimates the fixed time of a batch, which does not depend on its records, from batches of different size.

    took |            *    *          * batches; those above the line waited, or had slow records
         |       *       __*
         |     __*-----''
         |--*''  *                    the line is the median of the lines through two batches
         | overhead
         +-------------------- records of the fullest task

Spark's own time, a sink that commits, tasks that start. Pure.
"""

from collections.abc import Sequence
from itertools import combinations
from statistics import median

LOOK_BACK = 16
"""Batches in the estimate."""

FIRST_MS, MOST = 200.0, 0.8
"""First estimate; and the largest part of the shortest batch that an estimate may take."""

WIDE = 1.3
"""Two batches whose records differ by less than this factor are not compared."""

FEW = 4
"""With fewer batches than this, the estimate does not grow."""

GROWTH, LEAST_MS = 1.5, 100.0
"""Largest growth factor from one batch to the next; it applies to at least this many milliseconds."""

Point = tuple[float, float]
"""Records of a batch's fullest task, and the milliseconds that the batch took."""


def overhead(batches: Sequence[Point], before_ms: float) -> float:
    """The fixed milliseconds of the last batches; `before_ms` where they do not allow an estimate.

    It grows slowly, because slow records may look like it. It is always less than the shortest batch: if records seemed
    free, batches would grow without an end.
    """
    shortest = min(took for _, took in batches)
    met = [_at_zero(a, b) for a, b in combinations(sorted(batches), 2) if b[0] > WIDE * a[0]]
    if len(batches) < FEW:
        return max(0.0, min(before_ms, MOST * shortest, *met))
    estimate = min(max(0.0, median(met)), GROWTH * max(before_ms, LEAST_MS)) if met else before_ms
    return min(estimate, MOST * shortest)


def noise(batches: Sequence[Point], overhead_ms: float) -> float:
    """The median difference in milliseconds between a batch and the time that its records explain."""
    rate = median((took - overhead_ms) / rows for rows, took in batches)
    off = median(abs(took - overhead_ms - rate * rows) for rows, took in batches)
    return min(off, overhead_ms / 3)


def healthy_ms(batches: Sequence[Point], overhead_ms: float, noise_ms: float) -> float | None:
    """The cost of a record if none is slow: the lowest of all batches that allow an estimate."""
    costs = [(took - overhead_ms + noise_ms) / rows for rows, took in batches if took > 1.25 * overhead_ms]
    return min(costs, default=None)


def _at_zero(a: Point, b: Point) -> float:
    """The time of a batch without records, on the line through two others."""
    return a[1] - a[0] * (b[1] - a[1]) / (b[0] - a[0])
