"""A slice: a lane's hashes x an offset range of one partition; what one batch reads of it (spec 2)."""

from collections.abc import Iterable
from dataclasses import dataclass

from coordinator.ranges import HASH_MAX, HashRange, OffsetRange
from coordinator.subscription import TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class Slice:
    """A rectangle [start, until) x [lo, hi] on the plane of one topic-partition."""

    topic: str
    partition: int
    hashes: HashRange
    offsets: OffsetRange

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition whose plane it lies on."""
        return TopicPartition(self.topic, self.partition)

    @property
    def weight(self) -> float:
        """Records it holds if keys are spread evenly: offsets x share of the hash space."""
        return len(self.offsets) * self.hashes.size / (HASH_MAX + 1)


def weight(slices: Iterable[Slice]) -> float:
    """The sum of the weights."""
    return sum(s.weight for s in slices)
