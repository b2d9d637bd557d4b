"""The user's starting or ending offsets: words, offsets or timestamps. `kafka.log` resolves them to offsets."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from coordinator.values.subscription import TopicPartition

LATEST = -1
EARLIEST = -2


class NoMatch(StrEnum):
    """The result for a timestamp later than every record (`startingOffsetsByTimestampStrategy`)."""

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Earliest:
    """The beginning of every partition's log."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The end of every partition's log."""


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset for each partition; LATEST and EARLIEST are offsets too."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    """The first record at or after one time in every partition."""

    timestamp_ms: int
    no_match: NoMatch


@dataclass(frozen=True, slots=True)
class AtTimestamps:
    """The first record at or after a time for each partition."""

    timestamps_ms: Mapping[TopicPartition, int]
    no_match: NoMatch


OffsetSpec = Earliest | Latest | AtOffsets | AtTimestamp | AtTimestamps


def within(spec: OffsetSpec, partitions: Collection[TopicPartition]) -> OffsetSpec:
    """The part of a spec for `partitions`; words and single times are for every partition."""
    match spec:
        case AtOffsets(offsets):
            return AtOffsets({tp: offset for tp, offset in offsets.items() if tp in partitions})
        case AtTimestamps(timestamps, no_match):
            return AtTimestamps({tp: ms for tp, ms in timestamps.items() if tp in partitions}, no_match)
        case _:
            return spec
