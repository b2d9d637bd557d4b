"""The default assignor: whole partitions first, in proportion to capacity; moves little.

Three steps, all in integers:

1. `fair`: the amount of each member in each pool. A pool is the partitions with the same subscribers. Members that do
   not share come first: whole partitions, rounded down, so that each member that shares gets some.
2. In each pool, whole partitions: a member with a share of 3.4 partitions has 3 whole ones, those of before. The
   fractions share the rest, as a forest: fewest splits.
3. `layout`: the place of each member's part in the hash space of a shared partition.

So a pool of k members has at most k - 1 splits, and none where the shares are whole numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coordinator.assignment.assignors.assignor import Assignment, Subscriber, ordered, subscribers, topic_partitions
from coordinator.assignment.assignors.fair import SPACE, Pool, Shares, fair_shares
from coordinator.assignment.assignors.layout import Piece, lay_out, sizes, tiled
from coordinator.assignment.assignors.shares import partition_shares
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import TopicPartition

_NOWHERE = [Piece(0, SPACE, None)]


class Grouped:
    """Sticky, exact proportions, fewest splits."""

    name = "grouped"
    version = 1

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        """The assignment (see `Assignor.assign`); the same again if `previous` is its own for the same input."""
        before = _before(previous, {m.member: m for m in members})
        given: dict[str, dict[TopicPartition, tuple[HashRange, ...]]] = {m.member: {} for m in ordered(members)}
        pools = _pools(members, partitions, before)
        for pool, shares in zip(pools, _shares(members, pools), strict=True):
            for tp, wanted in zip(pool.partitions, partition_shares(shares, pool.held), strict=True):
                for member, ranges in _ranges(before.get(tp, _NOWHERE), wanted).items():
                    given[member][tp] = ranges
        return given


@dataclass(frozen=True, slots=True)
class _Partitions:
    """The partitions of all topics with the same subscribers, and the members' earlier parts of each."""

    subscribers: tuple[str, ...]
    partitions: list[TopicPartition] = field(default_factory=list)
    held: list[dict[str, int]] = field(default_factory=list)


def _before(previous: Assignment, members: Mapping[str, Subscriber]) -> dict[TopicPartition, list[Piece]]:
    """The earlier parts of members that still subscribe to the topic."""
    ranges: dict[TopicPartition, list[tuple[HashRange, str]]] = {}
    for member, owned in previous.items():
        for tp, hashes in owned.items():
            if member in members and tp.topic in members[member].topics:
                ranges.setdefault(tp, []).extend((h, member) for h in hashes)
    return {tp: tiled(pieces) for tp, pieces in ranges.items()}


def _pools(
    members: Sequence[Subscriber], partitions: Mapping[str, int], before: Mapping[TopicPartition, list[Piece]]
) -> list[_Partitions]:
    pools: dict[tuple[str, ...], _Partitions] = {}
    for topic, of_topic in subscribers(members).items():
        names = tuple(m.member for m in of_topic)
        pool = pools.setdefault(names, _Partitions(names))
        for tp in topic_partitions(topic, partitions.get(topic, 0)):
            pool.partitions.append(tp)
            pool.held.append(sizes(before.get(tp, ())))
    return [pools[key] for key in sorted(pools)]


def _shares(members: Sequence[Subscriber], pools: Sequence[_Partitions]) -> list[Shares]:
    """The amount of each member, pool by pool; members that do not share get whole partitions."""
    capacity = {m.member: m.capacity for m in members}
    sharing = frozenset(m.member for m in members if m.sharing)
    whole = _whole(capacity, sharing, [Pool(len(p.partitions), p.subscribers) for p in pools])
    rest = [
        Pool(len(p.partitions) - sum(w.values()), tuple(m for m in p.subscribers if m in sharing))
        for p, w in zip(pools, whole, strict=True)
    ]
    held = {i: {m: sum(h.get(m, 0) for h in p.held) for m in rest[i].members} for i, p in enumerate(pools)}
    shared = fair_shares(capacity, rest, held)
    return [
        Shares(s.given | {m: n * s.whole for m, n in w.items()}, s.whole) for s, w in zip(shared, whole, strict=True)
    ]


def _whole(capacity: Mapping[str, int], sharing: frozenset[str], pools: Sequence[Pool]) -> list[dict[str, int]]:
    """For each pool, member that does not share -> its number of whole partitions.

    Its fair share is rounded down, so that it starves no member that shares. If none shares, the largest fractions get
    the partitions left over.
    """
    if all(sharing.issuperset(pool.members) for pool in pools):
        return [{} for _ in pools]
    return [_rounded(p, shares, sharing) for p, shares in zip(pools, fair_shares(capacity, pools, {}), strict=True)]


def _rounded(pool: Pool, shares: Shares, sharing: frozenset[str]) -> dict[str, int]:
    fair = {m: amount for m, amount in shares.given.items() if m not in sharing}
    whole = {m: amount // shares.whole for m, amount in fair.items()}
    if sharing.isdisjoint(pool.members):
        largest = sorted(fair, key=lambda m: (-(fair[m] % shares.whole), m))
        for m in largest[: pool.partitions - sum(whole.values())]:
            whole[m] += 1
    return {m: n for m, n in whole.items() if n}


def _ranges(before: Sequence[Piece], wanted: Mapping[str, int]) -> dict[str, tuple[HashRange, ...]]:
    if len(wanted) == 1:
        return dict.fromkeys(wanted, (WHOLE,))
    ranges: dict[str, tuple[HashRange, ...]] = {}
    for lo, until, owner in lay_out(before, wanted):
        if owner is not None:
            ranges[owner] = (*ranges.get(owner, ()), HashRange(lo, until - 1))
    return ranges
