"""A value for each key hash: ascending, disjoint ranges with their values, and perhaps holes between them. Pure.

some            |aaaaaaaaa|bbbb|      |cccc|
other               |dddddddddd|
some.overlay    |aaa|dddddddddd|      |cccc|
some.minus      |aaa|                 |cccc|
some.within         |aaaaa|bbbb|                   the hashes of `other`
stacked         |a  |ad   |bd  |      |c   |        all values of each hash
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import Protocol, Self, TypeVar

from coordinator.values.ranges import HashRange

T = TypeVar("T")
V_co = TypeVar("V_co", covariant=True)
_hashes = itemgetter(0)


def _first(pair: tuple[HashRange, object]) -> int:
    return pair[0].lo


def _last(pair: tuple[HashRange, object]) -> int:
    return pair[0].hi


class HashMap(tuple[tuple[HashRange, V_co], ...]):
    """Is made, compares and hashes like a tuple of pairs, which is fast: there are thousands in a batch."""

    __slots__ = ()

    @staticmethod
    def of(hashes: HashRange, value: T) -> "HashMap[T]":
        """One value for these hashes."""
        return HashMap(((hashes, value),))

    @staticmethod
    def stacked(values: Iterable[tuple[HashRange, T]]) -> "HashMap[tuple[T, ...]]":
        """All values of each hash, of ranges that may overlap; cut wherever one of them begins or ends."""
        known = tuple(values)
        firsts = sorted({first for hashes, _ in known for first in (hashes.lo, hashes.hi + 1)})
        stacks = [list[T]() for _ in firsts]
        for hashes, value in known:
            for stack in stacks[bisect_left(firsts, hashes.lo) : bisect_right(firsts, hashes.hi)]:
                stack.append(value)
        pieces = zip(pairwise(firsts), stacks, strict=False)
        return HashMap((HashRange(lo, after - 1), tuple(stack)) for (lo, after), stack in pieces if stack)

    def filled(self, hashes: HashRange, value: T) -> "HashMap[V_co | T]":
        """The part in these hashes, with `value` where it has none."""
        whole: HashMap[V_co | T] = HashMap.of(hashes, value)
        return whole.overlay(self.within(hashes))

    def within(self, hashes: HashRange) -> Self:
        """The part in these hashes, cut at both ends."""
        near = self[bisect_left(self, hashes.lo, key=_last) : bisect_right(self, hashes.hi, key=_first)]
        return type(self)((part, value) for its, value in near if (part := its.intersection(hashes)))

    def minus(self, other: "HashMap[object]") -> Self:
        """The parts that `other` has no value for."""
        return type(self)(
            (part, value) for hashes, value in self for part in missing(hashes, map(_hashes, other.within(hashes)))
        )

    def overlay(self, other: Self) -> Self:
        """The values of `other`, and those of this one where `other` has none."""
        return type(self)(sorted((*self.minus(other), *other), key=_hashes))

    def coalesced(self) -> Self:
        """The same; neighbours with equal values are one range."""
        if len(self) < 2:  # mostly one range: of a thousand partitions, several times in every batch
            return self
        joined: list[tuple[HashRange, V_co]] = []
        for hashes, value in self:
            if joined and joined[-1][1] == value and joined[-1][0].hi + 1 == hashes.lo:
                joined[-1] = HashRange(joined[-1][0].lo, hashes.hi), value
            else:
                joined.append((hashes, value))
        return type(self)(joined)


class _Placed(Protocol):
    @property
    def hashes(self) -> HashRange: ...


P = TypeVar("P", bound=_Placed)
_lo, _hi = attrgetter("hashes.lo"), attrgetter("hashes.hi")


def touching(rows: Sequence[P], hashes: HashRange) -> Sequence[P]:
    """The rows that have some of these hashes. Rows ascend and are disjoint."""
    return rows[bisect_left(rows, hashes.lo, key=_hi) : bisect_right(rows, hashes.hi, key=_lo)]


def overlap(ranges: Iterable[HashRange]) -> tuple[HashRange, HashRange] | None:
    """The first two neighbours that overlap or do not ascend; None if all are disjoint and ascend."""
    return next(((below, above) for below, above in pairwise(ranges) if below.hi >= above.lo), None)


def missing(hashes: HashRange, covered: Iterable[HashRange]) -> tuple[HashRange, ...]:
    """The parts of `hashes` that are in none of `covered`."""
    left, lo = [], hashes.lo
    for c in sorted(covered):
        if c.lo > hashes.hi:
            break
        if lo < c.lo:
            left.append(HashRange(lo, c.lo - 1))
        lo = max(lo, c.hi + 1)
    return (*left, HashRange(lo, hashes.hi)) if lo <= hashes.hi else tuple(left)
