"""Cuts a partition in lanes of equal work; a slow key, or one that is much of the work, has a lane of its own. Pure.

work        |    :    ^ :  |     of each hash
even lanes  |----|----|----|     the last one has most of it
by work     |------|--|!|--|     ! has one key
"""

from collections.abc import Sequence

from coordinator.cost.profile import Cell, Profile, within
from coordinator.ranges import HASH_MAX, HashRange

UNEVEN = 1.05
"""Cut anew if the largest lane has this many times the work that it could have ..."""

VERY_UNEVEN = 1.4
"""... and at once, not within a minute after another change, at this factor."""

FOR_OTHERS = 0.75
"""The least part of the lanes for keys that are not slow."""

FINEST = (HASH_MAX + 1) // 4_096
"""A lane of fewer hashes is not cut by its work: it may have one key."""

Bounds = tuple[int, ...]
"""The first hashes of all lanes of a partition but the first."""


def by_work(profile: Profile, count: int, rate_ms: float, slow_ms: float) -> Bounds:
    """`count` lanes of equal work, and one for each cell whose records take more than `slow_ms`.

    A record of unknown cost takes `rate_ms`.
    """
    works = [_work(c, rate_ms) for c in profile]
    part = sum(works) / count
    alone = [_stands_out(c, w, part, slow_ms) for c, w in zip(profile, works, strict=True)]
    slots = sum(round(w / part) for a, w in zip(alone, works, strict=True) if a)
    rest = sum(w for a, w in zip(alone, works, strict=True) if not a) / max(FOR_OTHERS * count, count - slots, 1)
    found: set[int] = set()
    so_far = 0.0
    for cell, work, apart in zip(profile, works, alone, strict=True):
        if apart:
            found |= {cell.hashes.lo, cell.hashes.hi + 1}
        else:
            cuts, so_far = _cuts(cell, work, rest, so_far)
            found |= cuts
    return tuple(sorted(b for b in found if 0 < b <= HASH_MAX))


def _cuts(cell: Cell, work: float, part: float, so_far: float) -> tuple[set[int], float]:
    """Where the work before a hash is a multiple of `part`, if `so_far` of it comes before the cell; the work after."""
    found, whole = set[int](), work
    while part and so_far + work >= part * (1 - 1e-9) and len(found) < cell.hashes.size:
        work -= part - so_far
        found.add(cell.hashes.hi + 1 - int(cell.hashes.size * max(0.0, work) / whole))
        so_far = 0.0
    return found, so_far + max(0.0, work)


def _work(cell: Cell, rate_ms: float) -> float:
    """Milliseconds for each offset of the partition."""
    return cell.density * (rate_ms if cell.record_ms is None else cell.record_ms)


def _stands_out(cell: Cell, work: float, part: float, slow_ms: float) -> bool:
    slow = cell.record_ms is not None and cell.record_ms > slow_ms
    return slow or (cell.hashes.size <= FINEST and work > part / 2)


def largest(profile: Profile, bounds: Bounds, rate_ms: float) -> float:
    """The work of the largest lane that could be cut."""
    lanes = HashRange(0, HASH_MAX).cut(bounds)
    works = (sum(_work(c, rate_ms) for c in within(profile, h)) for h in lanes if h.size > FINEST)
    return max(works, default=0.0)


def better(now: Bounds, even: Bounds, profile: Profile, rate_ms: float, slow_ms: float, *, soon: bool) -> Bounds:
    """The bounds to cut at, by those of `now` and those of even lanes; `soon` after another change, seldom others."""
    wanted = by_work(profile, len(even) + 1, rate_ms, slow_ms)
    least = largest(profile, wanted, rate_ms)
    apart = {b for c in profile if c.record_ms is not None and c.record_ms > slow_ms for b in _edges(c)}
    uneven = VERY_UNEVEN if soon else UNEVEN

    def good(bounds: Bounds) -> bool:
        return apart <= set(bounds) and largest(profile, bounds, rate_ms) <= uneven * least

    if good(now) and (soon or len(now) <= len(wanted)):
        return now
    return even if good(even) else wanted


def _edges(cell: Cell) -> Sequence[int]:
    return [b for b in (cell.hashes.lo, cell.hashes.hi + 1) if 0 < b <= HASH_MAX]
