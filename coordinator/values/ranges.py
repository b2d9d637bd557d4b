"""Ranges: closed ranges of key hashes, half-open ranges of offsets (rule: half-open-offsets), and their sets. Pure.

hash     lo ------- hi      both belong to it
offset   start ---- until   `until` is the next offset to read
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple, Self

from coordinator.errors import StateFormatError

HASH_MAX = 2**63 - 1
OFFSET_MAX = 2**63 - 1
NUMBER = "(?:0|[1-9][0-9]{0,18})"
"""The pattern of a number in Redis, without leading zeros: scripts compare texts. It may exceed OFFSET_MAX."""

_NUMBER, _OFFSETS = re.compile(NUMBER), re.compile(f"({NUMBER})-({NUMBER})")
_HASHES = re.compile("([0-9a-f]{16})-([0-9a-f]{16})")


def is_number(text: str) -> bool:
    """Whether scripts accept this text as an offset: a number up to OFFSET_MAX without leading zeros."""
    return bool(_NUMBER.fullmatch(text)) and int(text) <= OFFSET_MAX


class _Closed(NamedTuple):
    """Compares and hashes like a tuple, which is fast."""

    lo: int
    hi: int


class HashRange(_Closed):
    """A closed range [lo, hi] of key hashes, within [0, 2^63 - 1]."""

    __slots__ = ()

    def __new__(cls, lo: int, hi: int) -> Self:
        """Raises `StateFormatError` for any other range."""
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

    @property
    def edges(self) -> tuple[int, ...]:
        """Where to cut the hash space, so that these hashes are a piece."""
        return tuple(first for first in (self.lo, self.hi + 1) if 0 < first <= HASH_MAX)

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
    found = _HASHES.fullmatch(text)
    if not found or not found[1] <= found[2] < "8":
        raise StateFormatError(f"{text!r} is not a hash range of the form lo-hi, 16 hex digits each, small letters")
    return HashRange(int(found[1], 16), int(found[2], 16))


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

    def intersection(self, other: Self) -> Self | None:
        """The common part, None if there is none."""
        start, until = max(self.start, other.start), min(self.until, other.until)
        return type(self)(start, until) if start < until else None

    def __str__(self) -> str:
        """Inclusive, as people read it: [45, 51) is `45-50`."""
        return f"{self.start}-{self.until - 1}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The range of an inclusive text like `45-50`."""
        found = _OFFSETS.fullmatch(text)
        if not found:
            raise StateFormatError(f"{text!r} is not an offset range of the form first-last")
        return cls(int(found[1]), int(found[2]) + 1)


Offsets = tuple[OffsetRange, ...]
"""A set of offsets: ranges ascending, disjoint and not touching."""


def offsets_of(text: str) -> Offsets:
    """The ranges of a text like `45-47 50-50`, which ascend and do not overlap; raises `StateFormatError`."""
    ranges = tuple(map(OffsetRange.parse, text.split(" ")))
    if any(left.until > right.start for left, right in pairwise(ranges)):
        raise StateFormatError(f"the offset ranges {text[:80]!r} overlap or are out of order")
    return ranges


def disjoint(ranges: Sequence[OffsetRange]) -> bool:
    """Whether ranges ascend and do not touch."""
    return all(left.until < right.start for left, right in pairwise(ranges))


def union(ranges: Iterable[OffsetRange]) -> Offsets:
    """The set of the offsets of `ranges`, which may overlap and touch."""
    merged: list[OffsetRange] = []
    for r in sorted(ranges, key=attrgetter("start")):
        if merged and r.start <= merged[-1].until:
            merged[-1] = OffsetRange(merged[-1].start, max(merged[-1].until, r.until))
        else:
            merged.append(r)
    return tuple(merged)


def parted(offsets: Offsets, at: int) -> tuple[Offsets, Offsets]:
    """The offsets before `at`, and the rest."""
    before = tuple(OffsetRange(r.start, min(r.until, at)) for r in offsets if r.start < at)
    return before, tuple(OffsetRange(max(r.start, at), r.until) for r in offsets if r.until > at)


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
