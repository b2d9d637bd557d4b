"""Progress of one partition: segments, each with a position and the individual commits above it.

    hash  |########....####|        a segment: hashes [lo, hi]
                   ^   ^            position 8: all offsets below it are done
                   |   +-- IC       done, to the right of the position
                   +------ gap      missing before the IC

Progress only grows. Additions may be repeated, in any order. All are values: operations return a new `Progress`.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Self

from coordinator.errors import StateFormatError
from coordinator.values.hash_map import HashMap, missing, overlap, touching
from coordinator.values.ranges import (
    OFFSET_MAX,
    WHOLE,
    HashRange,
    OffsetRange,
    Offsets,
    disjoint,
    is_number,
    offsets_of,
    subtract,
    union,
)


@dataclass(frozen=True, slots=True, order=True)
class Rectangle:
    """Offsets x hashes on the plane of one partition."""

    hashes: HashRange
    offsets: OffsetRange


@dataclass(frozen=True, slots=True)
class Segment:
    """A hash range with one position and the ICs above it.

    Invariant: every IC begins after the position, they ascend and do not touch.
    """

    hashes: HashRange
    position: int
    ics: Offsets = ()

    def __post_init__(self) -> None:
        if not 0 <= self.position <= OFFSET_MAX:
            raise StateFormatError(f"position {self.position} of {self.hashes} is not within [0, {OFFSET_MAX}]")
        if self.ics and (self.ics[0].start <= self.position or not disjoint(self.ics)):
            raise StateFormatError(
                f"individual commits of {self.hashes} overlap, touch or reach position {self.position}"
            )

    @property
    def reach(self) -> int:
        """The offset after the last one that is done."""
        return self.ics[-1].until if self.ics else self.position

    def add(self, done: Iterable[OffsetRange]) -> Self:
        """This segment with `done` offsets as well. The position moves over offsets that are now contiguous.

        position 42   ICs [45-47] [50-50]   add [43-44]  ->  position 48   ICs [50-50]
        """
        position, above = self.position, []
        for r in union((*self.ics, *done)):
            if r.start <= position:
                position = max(position, r.until)
            else:
                above.append(r)
        return type(self)(self.hashes, position, tuple(above))

    def remaining(self, wanted: OffsetRange) -> Offsets:
        """The offsets of `wanted` that are not done here."""
        if wanted.until <= self.position:
            return ()
        return subtract(OffsetRange(max(wanted.start, self.position), wanted.until), self.ics)

    def gaps(self, furthest: int) -> Offsets:
        """The offsets that are not done between the position and `furthest`."""
        return self.remaining(OffsetRange(self.position, furthest)) if self.position < furthest else ()

    def within(self, hashes: HashRange) -> Self:
        """The same state for other hashes. The caller keeps the tiling."""
        return self if hashes == self.hashes else type(self)(hashes, self.position, self.ics)


@dataclass(frozen=True, slots=True)
class Progress:
    """Segments of one partition, ascending and disjoint.

    The segments of a whole partition tile the hash space (`tiles`). A member sees only those of its owned ranges.
    """

    segments: tuple[Segment, ...]

    def __post_init__(self) -> None:
        if wrong := overlap(s.hashes for s in self.segments):
            raise StateFormatError(f"segments {wrong[0]} and {wrong[1]} overlap or are out of order")

    @property
    def stable(self) -> int:
        """The lowest position: all offsets below it are done, for every hash of these segments."""
        return min(s.position for s in self.segments)

    @property
    def furthest(self) -> int:
        """Nothing is done from here on; 0 without segments."""
        return max((s.reach for s in self.segments), default=0)

    @property
    def tiles(self) -> bool:
        """Whether the segments cover the whole hash space without a hole."""
        return not missing(WHOLE, (s.hashes for s in self.segments))

    def within(self, hashes: HashRange) -> Self:
        """The part of the state that lies in `hashes`."""
        parts = ((s, s.hashes.intersection(hashes)) for s in touching(self.segments, hashes))
        return type(self)(tuple(s.within(h) for s, h in parts if h))

    def add_all(self, done: Iterable[tuple[HashRange, Offsets]]) -> Self:
        """This progress with all of `done` done as well. Segments are cut at both ends of each hash range."""
        stacked = HashMap.stacked(done)
        parts = ((s.within(h), sets) for s in self.segments for h, sets in stacked.filled(s.hashes, ()))
        return type(self)(tuple(s.add(chain(*sets)) if sets else s for s, sets in parts))

    @classmethod
    def parse(cls, positions: Mapping[str, str], ics: Mapping[str, str] | None = None) -> Self:
        """The progress of the two texts. ICs are rectangles of their own and may be missing.

        Raises `StateFormatError` for anything else.
        """
        progress = cls(tuple(sorted(_segments(positions), key=lambda s: s.hashes)))
        return progress.add_all(commits_of(ics).items()) if ics else progress

    @classmethod
    def parse_whole(cls, where: object, positions: Mapping[str, str], ics: Mapping[str, str] | None = None) -> Self:
        """The same of a whole partition, named `where` in errors. Its segments, if any, tile (rule: exact-tiling).

        Damaged individual commits do not count (rule: ics-may-vanish).
        """
        progress = cls.parse(positions)
        if progress.segments and not progress.tiles:
            raise StateFormatError(f"the segments of {where} leave holes, whose records would count as done")
        return progress.add_all(sound_commits_of(ics).items()) if ics else progress


def commits_of(ics: Mapping[str, str]) -> dict[HashRange, Offsets]:
    """The individual commits of a text of Redis. Their hash ranges do not overlap, or `StateFormatError`."""
    done = {HashRange.parse(hashes): offsets_of(text) for hashes, text in ics.items()}
    if wrong := overlap(sorted(done)):
        raise StateFormatError(f"individual commits of {wrong[0]} and {wrong[1]} overlap")
    return done


def sound_commits_of(ics: Mapping[str, str]) -> dict[HashRange, Offsets]:
    """The same without damaged ones (rule: ics-may-vanish). Of hash ranges that overlap, the lower one counts."""
    sound: dict[HashRange, Offsets] = {}
    last = -1
    for field, text in sorted(ics.items()):
        with suppress(StateFormatError):
            hashes, offsets = HashRange.parse(field), offsets_of(text)
            if hashes.lo > last:
                sound[hashes], last = offsets, hashes.hi
    return sound


def _segments(positions: Mapping[str, str]) -> Iterable[Segment]:
    for hashes, position in positions.items():
        if not is_number(position):
            raise StateFormatError(f"position {position!r} of {hashes!r} is not an offset")
        yield Segment(HashRange.parse(hashes), int(position))
