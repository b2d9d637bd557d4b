"""A slice: a lane's hashes x an offset range of one partition; what one batch reads of it."""

from collections.abc import Iterable
from typing import NamedTuple

from coordinator.ranges import HashRange, OffsetRange
from coordinator.subscription import TopicPartition


class Slice(NamedTuple):
    """A rectangle [start, until) x [lo, hi] on the plane of one topic-partition; there are very many of them."""

    topic_partition: TopicPartition
    hashes: HashRange
    offsets: OffsetRange

    @property
    def lane(self) -> tuple[TopicPartition, HashRange]:
        """Whose slice it is: it has others where it left out what is done."""
        return self[:2]

    @property
    def topic(self) -> str:
        """The topic whose records it holds."""
        return self.topic_partition.topic

    @property
    def partition(self) -> int:
        """The number of the partition on whose plane it lies."""
        return self.topic_partition.partition

    @property
    def weight(self) -> float:
        """Records it holds if keys are spread evenly: offsets x share of the hash space."""
        return len(self.offsets) * self.hashes.share

    def within(self, offsets: OffsetRange) -> "Slice | None":
        """What of it lies in `offsets`, None if nothing does."""
        start, until = max(self.offsets.start, offsets.start), min(self.offsets.until, offsets.until)
        return self._replace(offsets=OffsetRange(start, until)) if start < until else None


def weight(slices: Iterable[Slice]) -> float:
    """The sum of the weights."""
    return sum(s.weight for s in slices)


def merged(slices: Iterable[Slice]) -> tuple[Slice, ...]:
    """The same points of one partition in fewer slices: what touches with the same offsets becomes one.

    Lanes that share a task and are the whole space together then need no hashes.

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
