"""A hash of joined topics is read only while its member owns it in all of them (rule: joined-topics). Pure.

    orders-3     |====|==========|        owned
    payments-3        |==========|====|   owned
    read              |==========|        of both; the rest waits for the range that is missing

Ranges of both topics move to the same owner, mostly at once. Meanwhile no task reads a hash of one topic while another
member reads it in the other.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import reduce

from coordinator.assignment.rebalance import union
from coordinator.plan.planning import OwnedRanges, bounded
from coordinator.progress.growth import Ceilings
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import TopicPartition

Hashes = tuple[HashRange, ...]


def owned_in_all(work: OwnedRanges, topics: Collection[str], held: OwnedRanges) -> OwnedRanges:
    """The work; the ceiling of hashes that are not owned in each of these topics is 0, so that nothing is read.

    `held`: owned hashes that the work leaves out, of failing keys. They hold up nothing of the other topics.
    """
    if len(topics) < 2:
        return work
    owned = _hashes(work, topics, held)
    units = defaultdict[int, dict[str, Hashes]](dict)
    for tp, hashes in owned.items():
        units[tp.partition][tp.topic] = hashes
    in_all = {n: reduce(_both, (of_unit.get(t, ()) for t in topics)) for n, of_unit in units.items()}
    apart = {tp: in_all[tp.partition] for tp, hashes in owned.items() if hashes != in_all[tp.partition]}
    return {**work, **{tp: bounded(work[tp], _only(hashes)) for tp, hashes in apart.items()}}


def _hashes(work: OwnedRanges, topics: Collection[str], held: OwnedRanges) -> Mapping[TopicPartition, Hashes]:
    return {
        tp: union(p.hashes for p in (*parts, *held.get(tp, ()))) for tp, parts in work.items() if tp.topic in topics
    }


def _both(some: Hashes, others: Hashes) -> Hashes:
    return tuple(sorted(part for a in some for b in others if (part := a.intersection(b))))


def _only(hashes: Hashes) -> Ceilings:
    """No limit within these hashes; elsewhere 0."""
    return HashMap[int | None](((WHOLE, 0),)).overlay(HashMap((h, None) for h in hashes))
