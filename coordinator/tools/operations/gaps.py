"""The gaps of a partition: unread offsets before the end of the furthest lane or individual commit.

    stable 8, lanes at 24 and 8, an individual commit [28-29] of the first:

    hash  |########################::::##      missing 24-27
          |########::::::::::::::::::::::      missing  8-29

Pure.
"""

from dataclasses import dataclass
from typing import Annotated

from coordinator.progress.segments import Progress, Segment
from coordinator.redis.group_state import GroupState
from coordinator.tools.fields import (
    EndAge,
    HashesText,
    Inclusive,
    LogEnd,
    Means,
    PartitionNumber,
    StableOffset,
    TopicField,
)
from coordinator.tools.operations.log_ends import age_s
from coordinator.values.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class Gap:
    """The gaps of one hash range; offset ranges are inclusive (rule: half-open-offsets)."""

    hashes: HashesText
    position: Annotated[int, Means("The next offset to read.")]
    missing: Annotated[
        tuple[Inclusive, ...], Means("Unread ranges of offsets: the first and the last of each.", "MISSING")
    ]


@dataclass(frozen=True, slots=True)
class PartitionGaps:
    """A partition's stable offset and the gaps above it."""

    topic: TopicField
    partition: PartitionNumber
    stable: StableOffset
    furthest: Annotated[int, Means("No lane has read from this offset on.")]
    gaps: tuple[Gap, ...]
    end: LogEnd = None
    end_age_s: EndAge = None


def gaps(state: GroupState) -> tuple[PartitionGaps, ...]:
    """The gaps of every partition, ascending; also partitions without gaps."""
    return tuple(_of_partition(tp, state) for tp in sorted(state.segments) if state.segments[tp])


def progress(state: GroupState, tp: TopicPartition) -> Progress:
    """Positions and individual commits of one partition."""
    done = ((rectangle.hashes, (rectangle.offsets,)) for rectangle in state.ics.get(tp, ()))
    return Progress(tuple(Segment(hashes, position) for hashes, position in state.segments[tp])).add_all(done)


def count(found: Progress) -> int:
    """How many gaps there are."""
    furthest = found.furthest
    return sum(len(s.gaps(furthest)) for s in found.segments)


def _of_partition(tp: TopicPartition, state: GroupState) -> PartitionGaps:
    found = progress(state, tp)
    furthest, end = found.furthest, state.ends.get(tp)
    parts = ((s, s.gaps(furthest)) for s in found.segments)
    missing = tuple(
        Gap(str(s.hashes), s.position, tuple(map(Inclusive.of, offsets))) for s, offsets in parts if offsets
    )
    return PartitionGaps(tp.topic, tp.partition, found.stable, furthest, missing, end, age_s(state, tp))
