"""What a batch takes whatever is read, told from what its records take: by batches of different size.

    took |            *    *          * batches; what is slow lies above the line
         |       *       __*
         |     __*-----''
         |--*''                       the line that no batch is below, over the widest span
         | overhead
         +-------------------- records of the fullest task

Spark's own time, a sink that commits, tasks that start. Pure.
"""

from collections.abc import Sequence
from itertools import combinations

FIRST_MS, MOST = 500.0, 0.8
"""So much is believed before anything is known, and never more than this part of the shortest batch."""

WIDE = 1.3
"""Batches whose records differ by less tell nothing."""

Point = tuple[float, float]
"""Records of a batch's fullest task, and the milliseconds that the batch took."""


def overhead(batches: Sequence[Point], before_ms: float) -> float:
    """The milliseconds of the last batches that were not for records; `before_ms` where they do not tell.

    Never all of what the shortest took: records that cost nothing would be read without an end.
    """
    shortest = min(took for _, took in batches)
    lines = [(b[0] - a[0], max(0.0, _on(a, b, 0.0))) for a, b in _pairs(batches)]
    found = max(lines)[1] if lines else before_ms
    return min(found, MOST * shortest)


def _pairs(batches: Sequence[Point]) -> list[tuple[Point, Point]]:
    """Two batches of different size, so that no other is below the line through them."""
    wide = [(a, b) for a, b in combinations(sorted(batches), 2) if b[0] > WIDE * a[0]]
    return [(a, b) for a, b in wide if all(took >= _on(a, b, rows) - 1 for rows, took in batches)]


def _on(a: Point, b: Point, rows: float) -> float:
    return a[1] + (b[1] - a[1]) * (rows - a[0]) / (b[0] - a[0])
