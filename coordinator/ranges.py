"""Ranges: closed ranges of key hashes, half-open ranges of offsets (spec R1), and their sets.

    hash     lo ------- hi      both belong to it
    offset   start ---- until   `until` is the next offset to read

Pure integers; knows nothing of topics, lanes or Redis.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple, Self

from coordinator.errors import StateFormatError

HASH_MAX = 2**63 - 1
OFFSET_MAX = 2**63 - 1


class _Closed(NamedTuple):
    """Compares and hashes as a tuple does: of lanes there are very many."""

    lo: int
    hi: int


class HashRange(_Closed):
    """A closed range [lo, hi] of key hashes, within [0, 2^63 - 1]."""

    __slots__ = ()

    def __new__(cls, lo: int, hi: int) -> Self:
        """Raises `StateFormatError` for what is no such range."""
        if not 0 <= lo <= hi <= HASH_MAX:
            raise StateFormatError(f"hash range [{lo}, {hi}] is not within [0, {HASH_MAX}] or is inverted")
        return tuple.__new__(cls, (lo, hi))

    @property
    def size(self) -> int:
        """Number of hash values."""
        return self.hi - self.lo + 1

    @property
    def share(self) -> float:
        """Share of the hash space."""
        return self.size / (HASH_MAX + 1)

    def __contains__(self, key_hash: object) -> bool:
        return isinstance(key_hash, int) and self.lo <= key_hash <= self.hi

    def intersection(self, other: Self) -> Self | None:
        """The common part, None if there is none."""
        lo, hi = max(self.lo, other.lo), min(self.hi, other.hi)
        return type(self)(lo, hi) if lo <= hi else None

    def cut(self, bounds: Iterable[int]) -> "tuple[HashRange, ...]":
        """The pieces between `bounds`; each bound is the first hash of a piece."""
        return _cut(self, tuple(bounds))

    def __str__(self) -> str:
        return _text(self)

    @staticmethod
    def parse(text: str) -> "HashRange":
        """The range of a text like `0000000000000000-7fffffffffffffff` (16 hex digits each)."""
        return _parsed(text)


# Partitions by the thousand are cut alike, and their ranges are written and read again in every batch.


@lru_cache(maxsize=256)
def _cut(hashes: HashRange, bounds: tuple[int, ...]) -> tuple[HashRange, ...]:
    inner = sorted({bound for bound in bounds if hashes.lo < bound <= hashes.hi})
    return tuple(HashRange(lo, until - 1) for lo, until in pairwise((hashes.lo, *inner, hashes.hi + 1)))


@lru_cache(maxsize=16_384)
def _text(hashes: HashRange) -> str:
    return f"{hashes.lo:016x}-{hashes.hi:016x}"


@lru_cache(maxsize=16_384)
def _parsed(text: str) -> HashRange:
    lo, _, hi = text.partition("-")
    try:
        if len(lo) != 16 or len(hi) != 16:
            raise ValueError
        return HashRange(int(lo, 16), int(hi, 16))
    except ValueError:
        raise StateFormatError(f"{text!r} is not a hash range of the form lo-hi, 16 hex digits each") from None


WHOLE = HashRange(0, HASH_MAX)


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """A non-empty, half-open range [start, until) of offsets."""

    start: int
    until: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.until <= OFFSET_MAX:
            raise StateFormatError(f"offset range [{self.start}, {self.until}) is empty, inverted or out of bounds")

    def __len__(self) -> int:
        return self.until - self.start

    def __str__(self) -> str:
        """Inclusive, as people read it (spec R1): [45, 51) is `45-50`."""
        return f"{self.start}-{self.until - 1}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The range of an inclusive text like `45-50`."""
        first, _, last = text.partition("-")
        if not (first.isascii() and first.isdecimal() and last.isascii() and last.isdecimal()):
            raise StateFormatError(f"{text!r} is not an offset range of the form first-last")
        return cls(int(first), int(last) + 1)


Offsets = tuple[OffsetRange, ...]
"""A set of offsets: ranges ascending, disjoint and not touching."""


def disjoint(ranges: Sequence[OffsetRange]) -> bool:
    """Whether they ascend and do not touch: `union` of them is the same."""
    return all(left.until < right.start for left, right in pairwise(ranges))


def union(ranges: Iterable[OffsetRange]) -> Offsets:
    """The set that holds exactly the offsets of `ranges`, which may overlap and touch."""
    merged: list[OffsetRange] = []
    for r in sorted(ranges, key=attrgetter("start")):
        if merged and r.start <= merged[-1].until:
            merged[-1] = OffsetRange(merged[-1].start, max(merged[-1].until, r.until))
        else:
            merged.append(r)
    return tuple(merged)


def subtract(wanted: OffsetRange, done: Offsets) -> Offsets:
    """The offsets of `wanted` that are not in `done`.

    wanted    |==================|
    done   ##    ####     ##  ####
    result    |=|    |====|  |
    """
    left, start = [], wanted.start
    for d in done:
        if d.until <= start:
            continue
        if d.start >= wanted.until:
            break
        if d.start > start:
            left.append(OffsetRange(start, d.start))
        start = d.until
    if start < wanted.until:
        left.append(OffsetRange(start, wanted.until))
    return tuple(left)
