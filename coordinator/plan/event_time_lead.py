"""How far lanes may be ahead of the oldest unread record, in record time: `max.lane.lead` (rule: lane-lead). Pure.

    lane behind  |####~~~~~~              its next record is of 12:00
    lane ahead   |##########~~~|          reads up to the first record later than 12:00 + lead
                               ^ ceiling

A lane that may not read now (parked, or behind a growth) holds up no other lane. The lane furthest behind always
has at least one offset to read, however times jump in the log.
"""

from collections.abc import Iterator, Mapping

from coordinator.plan.planning import OwnedRanges, bounded
from coordinator.ranges import OffsetRange
from coordinator.subscription import TopicPartition

Stretches = Mapping[TopicPartition, OffsetRange]


def unread(work: OwnedRanges, ends: Mapping[TopicPartition, int]) -> Stretches:
    """The offsets from the lowest readable position to the end, for partitions with something to read."""
    lowest = {tp: min(found) for tp in work if (found := list(_readable(work, ends, tp)))}
    return {tp: OffsetRange(position, ends[tp]) for tp, position in lowest.items()}


def _readable(work: OwnedRanges, ends: Mapping[TopicPartition, int], tp: TopicPartition) -> Iterator[int]:
    return (p.position for p in work[tp] if p.position < p.reach(ends[tp]))


def within_lead(
    work: OwnedRanges, later: Mapping[TopicPartition, int], oldest: Mapping[TopicPartition, OffsetRange]
) -> OwnedRanges:
    """`work` with ceilings. `later` has the first record of each partition that is too late.

    `oldest` has the unread offsets of the partitions whose next record is the oldest of all.
    """
    ceilings = {tp: max(at, oldest[tp].start + 1) if tp in oldest else at for tp, at in later.items()}
    return {tp: bounded(parts, ((0, ceilings[tp]),)) if tp in ceilings else parts for tp, parts in work.items()}
