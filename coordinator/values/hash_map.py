"""A value for each key hash: ascending, disjoint ranges with their values, and perhaps holes between them. Pure.

some            |aaaaaaaaa|bbbb|      |cccc|
other               |dddddddddd|
some.overlay    |aaa|dddddddddd|      |cccc|
some.minus      |aaa|                 |cccc|
some.within         |aaaaa|bbbb|                   the hashes of `other`
"""

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter
from typing import Self, TypeVar

from coordinator.values.ranges import HASH_MAX, HashRange

T = TypeVar("T")
V_co = TypeVar("V_co", covariant=True)
_hashes = itemgetter(0)


class HashMap(tuple[tuple[HashRange, V_co], ...]):
    """Is made, compares and hashes like a tuple of pairs, which is fast: there are thousands in a batch."""

    __slots__ = ()

    @staticmethod
    def of(hashes: HashRange, value: T) -> "HashMap[T]":
        """One value for these hashes."""
        return HashMap(((hashes, value),))

    def within(self, hashes: HashRange) -> Self:
        """The part in these hashes, cut at both ends."""
        parts: list[tuple[HashRange, V_co]] = []
        for i in range(max(0, bisect_right(self, (hashes.lo, HASH_MAX), key=_hashes) - 1), len(self)):
            its, value = self[i]
            if its.lo > hashes.hi:
                break
            if part := its.intersection(hashes):
                parts.append((part, value))
        return type(self)(parts)

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


def missing(hashes: HashRange, covered: Iterable[HashRange]) -> tuple[HashRange, ...]:
    """The parts of `hashes` that `covered`, ascending and disjoint, leaves out."""
    left, lo = [], hashes.lo
    for c in covered:
        if lo < c.lo:
            left.append(HashRange(lo, c.lo - 1))
        lo = c.hi + 1
    return (*left, HashRange(lo, hashes.hi)) if lo <= hashes.hi else tuple(left)
