"""A slice: a lane's hashes x an offset range of one partition. One batch reads it."""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from coordinator.errors import StateFormatError
from coordinator.values.ranges import NUMBER, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

_BEGUN = re.compile(rf"(\S+) ({NUMBER}) (\S+) ({NUMBER})-({NUMBER})(?: one)?")

LaneId = tuple[TopicPartition, HashRange]
"""The name of a lane in one batch."""


class Slice(NamedTuple):
    """A rectangle [start, until) x [lo, hi] on the plane of one topic-partition; there are very many of them."""

    topic_partition: TopicPartition
    hashes: HashRange
    offsets: OffsetRange

    @property
    def lane(self) -> LaneId:
        """Its lane. A lane that leaves out done offsets has several slices."""
        return self[:2]

    @property
    def topic(self) -> str:
        """The topic of its records."""
        return self.topic_partition.topic

    @property
    def partition(self) -> int:
        """The number of its partition."""
        return self.topic_partition.partition

    @property
    def weight(self) -> float:
        """The number of its records if keys are spread evenly: offsets x share of the hash space."""
        return len(self.offsets) * self.hashes.share

    def within(self, offsets: OffsetRange) -> "Slice | None":
        """The part of it in `offsets`; None if there is none."""
        start, until = max(self.offsets.start, offsets.start), min(self.offsets.until, offsets.until)
        return self._replace(offsets=OffsetRange(start, until)) if start < until else None


def begun(text: str) -> tuple[Slice, ...]:
    """The slices in a member's report of what its tasks are at. It is a hint: what nobody can read is left out."""
    return tuple(found for item in text.split(";") if (found := _slice(item)))


def _slice(item: str) -> Slice | None:
    found = _BEGUN.fullmatch(item)
    if not found:
        return None
    with suppress(StateFormatError):
        tp, offsets = TopicPartition(found[1], int(found[2])), OffsetRange(int(found[4]), int(found[5]))
        return Slice(tp, HashRange.parse(found[3]), offsets)
    return None


def weight(slices: Iterable[Slice]) -> float:
    """The sum of their weights."""
    return sum(s.weight for s in slices)


def merged(slices: Iterable[Slice]) -> tuple[Slice, ...]:
    """The same points of one partition in fewer slices. Slices that touch, with the same offsets, become one.

    Lanes that share a task and cover the whole space then need no hashes.

        hash  |######|           |######|
              |######|    ->     |######|
              |###|              |###|
    """
    done: list[Slice] = []
    for s in sorted(slices, key=lambda s: (s.offsets, s.hashes)):
        if done and done[-1].offsets == s.offsets and done[-1].hashes.hi + 1 >= s.hashes.lo:
            below = done.pop().hashes
            done.append(Slice(s.topic_partition, HashRange(below.lo, max(below.hi, s.hashes.hi)), s.offsets))
        else:
            done.append(s)
    return tuple(done)
