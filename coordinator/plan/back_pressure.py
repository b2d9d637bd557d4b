"""The limit of a partition at its cap of individual commits (rule: individual-commit-cap). Pure.

    ahead    |########....##..##       gaps only: up to its last individual commit
    ahead    |##########               nothing new
    behind   |####~~~~~~~~~~~~~~>      as always
                 ^ stable offset

The lane behind moves the stable offset, and the lanes with gaps shrink the set. So the set always drains: each
lane either fills gaps, or is itself behind once the others have passed it.
"""

from collections.abc import Mapping

from coordinator.plan.planning import OwnedRange, OwnedRanges
from coordinator.progress.segments import Progress
from coordinator.values.subscription import TopicPartition


def held_back(work: OwnedRanges, whole: Mapping[TopicPartition, Progress], most: int) -> OwnedRanges:
    """`work` with a ceiling for each piece ahead, in partitions with `most` individual commits or more.

    `whole` has the positions of all hashes of each partition, of all owners.
    """
    full = {tp: p.stable for tp, p in whole.items() if tp in work and sum(len(s.ics) for s in p.segments) >= most}
    return {**work, **{tp: tuple(_lowered(owned, stable) for owned in work[tp]) for tp, stable in full.items()}}


def _lowered(owned: OwnedRange, stable: int) -> OwnedRange:
    if owned.position == stable:
        return owned
    ceiling = owned.ics[-1].start if owned.ics else owned.position
    return owned._replace(ceiling=owned.reach(ceiling))
