"""The known costs of a partition's keys: cells that tile its hash space.

    hash 2^63 |------------|  0.004 records per offset, 1.1 ms each
              |------------|  0.001 records per offset, 104 ms each: a slow key
            0 |------------|  0.5 records per offset, cost unknown

Guesses for the planner, never facts about positions. Pure values; `costs` updates them.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from coordinator.values.hash_map import touching
from coordinator.values.ranges import WHOLE, HashRange

MOST_CELLS = 1_024
"""Most cells of one partition."""

START_SEEN = 1_000.0
"""Weight, in offsets, of the first assumption that keys are spread evenly."""

FEW = 10.0
"""Least number of records in an average: where records are rare, a batch without any proves little."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A hash range whose keys have about the same known cost; None: not known.

    `seen` counts the offsets behind the density; older ones count less.
    """

    hashes: HashRange
    density: float  # records per offset of the partition
    record_ms: float | None = None
    seen: float = START_SEEN

    def within(self, hashes: HashRange) -> Self:
        """The part of the cell in `hashes`, which lies within. It has the same density for each hash."""
        if hashes == self.hashes:
            return self
        part = hashes.size / self.hashes.size
        return type(self)(hashes, self.density * part, self.record_ms, self.seen * part)

    def denser(self, rows: float, span: int) -> Self:
        """The cell after a batch with this many records in `span` offsets. Older ones count less, but `FEW` at least.

        A lane without any may have some in the next batch.
        """
        seen = min(self.seen, max(float(span), FEW / self.density))
        floor = max(0.05 * self.hashes.share, 1 / (2 * (seen + span)))
        density = max(floor, (seen * self.density + rows) / (seen + span))
        return replace(self, density=density, seen=seen + span)

    def like(self, other: "Cell") -> bool:
        """Whether two cells are equal except for their hashes."""
        mine, its = self.density / self.hashes.size, other.density / other.hashes.size
        return self.record_ms == other.record_ms and abs(mine - its) <= 0.02 * max(mine, its)


Profile = tuple[Cell, ...]
UNKNOWN: Profile = (Cell(WHOLE, 1.0),)


def within(profile: Profile, hashes: HashRange) -> Profile:
    """The cells of `hashes`, cut at its ends."""
    return tuple(c.within(h) for c in touching(profile, hashes) if (h := c.hashes.intersection(hashes)))


def _lowest(cell: Cell) -> int:
    return cell.hashes.lo


def one(profile: Profile, hashes: HashRange) -> Cell:
    """The cells of `hashes` as one: records add up, the cost is the mean of the known ones."""
    first = _first(profile, hashes)
    if hashes.hi <= first.hashes.hi:
        return first.within(hashes)
    cells = within(profile, hashes)
    return Cell(hashes, *_mean(cells), max(c.seen for c in cells))


def mean(profile: Profile, hashes: HashRange) -> tuple[float, float | None]:
    """Density and cost of a record of `one`, without a cell for each of very many lanes."""
    first = _first(profile, hashes)
    if hashes.hi <= first.hashes.hi:
        return first.density * (hashes.size / first.hashes.size), first.record_ms
    return _mean(within(profile, hashes))


def _first(profile: Profile, hashes: HashRange) -> Cell:
    return profile[bisect_right(profile, hashes.lo, key=_lowest) - 1]


def _mean(cells: Profile) -> tuple[float, float | None]:
    known = [c for c in cells if c.record_ms is not None]
    rows = sum(c.density for c in known)
    cost = sum(c.density * (c.record_ms or 0.0) for c in known) / rows if known else None
    return sum(c.density for c in cells), cost


def changed(profile: Profile, hashes: HashRange, change: Callable[[Cell], Cell]) -> Profile:
    """The profile with the cells of `hashes` joined to one and changed."""
    first = bisect_right(profile, hashes.lo, key=_lowest) - 1
    last = bisect_right(profile, hashes.hi, lo=first, key=_lowest) - 1
    low, high = profile[first].hashes.lo, profile[last].hashes.hi
    below = (profile[first].within(HashRange(low, hashes.lo - 1)),) if low < hashes.lo else ()
    above = (profile[last].within(HashRange(hashes.hi + 1, high)),) if hashes.hi < high else ()
    return (*profile[:first], *below, change(one(profile, hashes)), *above, *profile[last + 1 :])


def compacted(profile: Profile) -> Profile:
    """The profile with equal neighbours joined; at most `MOST_CELLS` cells."""
    cells: list[Cell] = []
    for cell in profile:
        if cells and cells[-1].like(cell):
            cells.append(_joined(cells.pop(), cell))
        else:
            cells.append(cell)
    while len(cells) > MOST_CELLS:
        cells = [_joined(*pair) for pair in zip(cells[::2], cells[1::2], strict=False)] + cells[len(cells) // 2 * 2 :]
    return tuple(cells)


def _joined(below: Cell, above: Cell) -> Cell:
    return one((below, above), HashRange(below.hashes.lo, above.hashes.hi))
