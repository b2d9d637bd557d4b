"""What another consumer has done in one partition. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class DoneOffsets:
    """All offsets below `position`, and those of `above`: ascending, above the position, not touching."""

    tp: TopicPartition
    position: int
    above: tuple[OffsetRange, ...] = ()


def completed(offsets: Iterable[int]) -> tuple[OffsetRange, ...]:
    """Ascending offsets as ranges."""
    ranges: list[OffsetRange] = []
    for offset in offsets:
        if ranges and ranges[-1].until == offset:
            ranges[-1] = OffsetRange(ranges[-1].start, offset + 1)
        else:
            ranges.append(OffsetRange(offset, offset + 1))
    return tuple(ranges)
