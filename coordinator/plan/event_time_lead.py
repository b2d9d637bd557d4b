"""`maxLaneLead`: the most record time between a lane and the oldest unread record (rule: lane-lead). Pure.

    lane behind  |####~~~~~~              its next record is of 12:00
    lane ahead   |##########~~~|          reads up to the first record later than 12:00 + lead
                               ^ ceiling

A lane that may not read now (parked, or behind a growth) holds up no other lane. The lane furthest behind always
has at least one offset to read, however times jump in the log.
"""

from collections.abc import Mapping

from coordinator.plan.planning import OwnedRanges, bounded
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition


def unread(work: OwnedRanges, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetRange]:
    """The offsets from the lowest readable position to the end, for partitions with something to read."""
    readable = {tp: [p.position for p in parts if p.waits(ends[tp])] for tp, parts in work.items()}
    return {tp: OffsetRange(min(positions), ends[tp]) for tp, positions in readable.items() if positions}


def within_lead(
    work: OwnedRanges, later: Mapping[TopicPartition, int], oldest: Mapping[TopicPartition, OffsetRange]
) -> OwnedRanges:
    """`work` with ceilings. `later` has the first record of each partition that is too late.

    `oldest` has the unread offsets of the partitions whose next record is the oldest of all.
    """
    ends = {tp: max(at, oldest[tp].start + 1) if tp in oldest else at for tp, at in later.items()}
    return {tp: bounded(parts, HashMap.of(WHOLE, ends[tp])) if tp in ends else parts for tp, parts in work.items()}
