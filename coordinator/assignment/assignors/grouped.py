"""The default assignor: whole partitions first, in proportion to capacity; moves little.

1. `fair_shares`: the amount of each member in each pool. A pool is the partitions with the same subscribers. Members
   that do not share come first: whole partitions, rounded down, so that each member that shares gets some.
2. `lay_out`: whole partitions, and the place of each member's part in the hash space of a shared partition.

So a pool of k members has at most k - 1 splits, and none where the shares are whole numbers.
"""

from collections.abc import Mapping, Sequence

from coordinator.assignment.assignors.assignor import Assignment, Subscriber, ordered, subscribers, topic_partitions
from coordinator.assignment.assignors.layout import lay_out, pieces_of, ranges_of
from coordinator.assignment.assignors.shares import Pool, Shares, fair_shares, largest_remainder
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition


class Grouped:
    """Sticky, whole partitions first, few splits."""

    name = "grouped"
    version = 1

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        """The assignment (see `Assignor.assign`); the same again if `previous` is its own for the same input."""
        given: dict[str, dict[TopicPartition, tuple[HashRange, ...]]] = {m.member: {} for m in ordered(members)}
        pools = _pools(members, partitions)
        for (names, tps), shares in zip(pools.items(), _shares(members, pools), strict=True):
            held = {tp: [(h, m) for m in names for h in previous.get(m, {}).get(tp, ())] for tp in tps}
            before = [piece for p, tp in enumerate(tps) for piece in pieces_of(p, held[tp], shares.whole)]
            for piece, hashes in ranges_of(lay_out(before, shares), shares.whole):
                owned, tp = given[piece.owner], tps[piece.partition]
                owned[tp] = (*owned.get(tp, ()), hashes)
        return given


_Pools = Mapping[tuple[str, ...], Sequence[TopicPartition]]
"""Subscribers -> the partitions of all topics with just these."""


def _pools(members: Sequence[Subscriber], partitions: Mapping[str, int]) -> _Pools:
    pools: dict[tuple[str, ...], list[TopicPartition]] = {}
    for topic, of_topic in subscribers(members).items():
        tps = topic_partitions(topic, partitions.get(topic, 0))
        pools.setdefault(tuple(m.member for m in of_topic), []).extend(tps)
    return pools


def _shares(members: Sequence[Subscriber], pools: _Pools) -> list[Shares]:
    """The amount of each member, pool by pool; members that do not share get whole partitions."""
    capacity = {m.member: m.capacity for m in members}
    sharing = frozenset(m.member for m in members if m.sharing)
    counts = [Pool(len(tps), names) for names, tps in pools.items()]
    whole = [_whole(pool, shares, sharing) for pool, shares in zip(counts, fair_shares(capacity, counts), strict=True)]
    rest = [
        Pool(pool.partitions - sum(w.values()), tuple(m for m in pool.members if m in sharing))
        for pool, w in zip(counts, whole, strict=True)
    ]
    return [
        Shares(shares.given | {m: n * shares.whole for m, n in w.items()}, shares.whole)
        for shares, w in zip(fair_shares(capacity, rest), whole, strict=True)
    ]


def _whole(pool: Pool, shares: Shares, sharing: frozenset[str]) -> dict[str, int]:
    """The number of whole partitions of each member that does not share.

    Its fair share is rounded down, so that it starves no member that shares. If none shares, all partitions are given.
    """
    fair = {m: units / shares.whole for m, units in shares.given.items() if m not in sharing}
    return largest_remainder(
        fair, pool.partitions if sharing.isdisjoint(pool.members) else sum(map(int, fair.values()))
    )
