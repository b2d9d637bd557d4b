"""How far lanes may run ahead of the one furthest behind, in record time: `max.lane.lead` (spec 7, Event time). Pure.

    lane behind  |####~~~~~~              its next record is of 12:00
    lane ahead   |##########~~~|          reads up to the first record later than 12:00 + lead
                               ^ ceiling

A lane that may not read now (parked, or behind a gate) holds nobody up. Whoever is furthest behind has always at
least one offset to read, however times jump in the log.
"""

from collections.abc import Iterator, Mapping

from coordinator.plan.planning import OwnedRanges, bounded
from coordinator.ranges import OffsetRange
from coordinator.subscription import TopicPartition

Stretches = Mapping[TopicPartition, OffsetRange]


def unread(work: OwnedRanges, ends: Mapping[TopicPartition, int]) -> Stretches:
    """From the lowest position that may be read on to the end of the log, for partitions where there is one."""
    lowest = {tp: min(found) for tp in work if (found := list(_readable(work, ends, tp)))}
    return {tp: OffsetRange(position, ends[tp]) for tp, position in lowest.items()}


def _readable(work: OwnedRanges, ends: Mapping[TopicPartition, int], tp: TopicPartition) -> Iterator[int]:
    return (p.position for p in work[tp] if p.position < p.reach(ends[tp]))


def within_lead(
    work: OwnedRanges, later: Mapping[TopicPartition, int], oldest: Mapping[TopicPartition, OffsetRange]
) -> OwnedRanges:
    """`work` with the ceilings: `later` is where the first record that is too late lies in each partition.

    `oldest` is what is unread where the next record is the oldest of all.
    """
    ceilings = {tp: max(at, oldest[tp].start + 1) if tp in oldest else at for tp, at in later.items()}
    return {tp: bounded(parts, ((0, ceilings[tp]),)) if tp in ceilings else parts for tp, parts in work.items()}
