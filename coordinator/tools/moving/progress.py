"""What another consumer has done in one partition. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from coordinator.values.ranges import OffsetRange, union
from coordinator.values.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class DoneOffsets:
    """All offsets below `position`, and those of `above`: ascending, above the position, not touching."""

    tp: TopicPartition
    position: int
    above: tuple[OffsetRange, ...] = ()

    @classmethod
    def of(cls, tp: TopicPartition, position: int, done: Iterable[OffsetRange]) -> Self:
        """The same for ranges at or above the position: what is done at it raises it. They may touch and overlap."""
        above = union(done)
        if above and above[0].start == position:
            return cls(tp, above[0].until, above[1:])
        return cls(tp, position, above)
