"""The default assignor: whole partitions first, in proportion to capacity; moves little.

Three steps, all in integers:

1. `fair`: how much each member gets of which pool, a pool being the partitions with the same subscribers;
   members that do not share first, in whole partitions, rounded down so that they starve nobody who shares.
2. Per pool, whole partitions: a member whose share is 3.4 partitions has 3 whole ones, those it had.
   What is left over is shared by the fractions, as a forest: fewest splits.
3. `layout`: where in its hash space each member's part of a shared partition lies.

So a pool of k members has at most k - 1 splits, and none where the shares are whole numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coordinator.assignors.assignor import Assignment, Subscriber, ordered, topic_partitions
from coordinator.assignors.fair import SPACE, Pool, Shares, fair_shares
from coordinator.assignors.layout import Piece, lay_out, sizes, tiled
from coordinator.assignors.shares import partition_shares
from coordinator.assignors.whole import whole_shares
from coordinator.ranges import WHOLE, HashRange
from coordinator.subscription import TopicPartition

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
    """The partitions of all topics with the same subscribers, and how much who held of each."""

    subscribers: tuple[str, ...]
    partitions: list[TopicPartition] = field(default_factory=list)
    held: list[dict[str, int]] = field(default_factory=list)

    def held_by(self, member: str) -> int:
        """How much a member held of all of them."""
        return sum(held.get(member, 0) for held in self.held)


def _before(previous: Assignment, members: Mapping[str, Subscriber]) -> dict[TopicPartition, list[Piece]]:
    """Who held what, without those who are gone or subscribe to it no more."""
    ranges: dict[TopicPartition, list[tuple[HashRange, str]]] = {}
    for member, owned in previous.items():
        for tp, hashes in owned.items():
            if member in members and tp.topic in members[member].topics:
                ranges.setdefault(tp, []).extend((h, member) for h in hashes)
    return {tp: tiled(pieces) for tp, pieces in ranges.items()}


def _pools(
    members: Sequence[Subscriber], partitions: Mapping[str, int], before: Mapping[TopicPartition, list[Piece]]
) -> list[_Partitions]:
    subscribers: dict[str, list[str]] = {}
    for m in ordered(members):
        for topic in m.topics:
            subscribers.setdefault(topic, []).append(m.member)
    pools: dict[tuple[str, ...], _Partitions] = {}
    for topic in sorted(subscribers):
        pool = pools.setdefault(tuple(subscribers[topic]), _Partitions(tuple(subscribers[topic])))
        for tp in topic_partitions(topic, partitions.get(topic, 0)):
            pool.partitions.append(tp)
            pool.held.append(sizes(before.get(tp, ())))
    return [pools[key] for key in sorted(pools)]


def _shares(members: Sequence[Subscriber], pools: Sequence[_Partitions]) -> list[Shares]:
    """Per pool, how much each member gets; those that do not share a number of whole partitions."""
    capacity = {m.member: m.capacity for m in members}
    sharing = frozenset(m.member for m in members if m.sharing)
    whole = whole_shares(capacity, sharing, [Pool(len(p.partitions), p.subscribers) for p in pools])
    rest = [
        Pool(len(p.partitions) - sum(w.values()), tuple(m for m in p.subscribers if m in sharing))
        for p, w in zip(pools, whole, strict=True)
    ]
    held = {i: {m: p.held_by(m) for m in rest[i].members} for i, p in enumerate(pools)}
    shared = fair_shares(capacity, rest, held)
    return [
        Shares(s.given | {m: n * s.whole for m, n in w.items()}, s.whole) for s, w in zip(shared, whole, strict=True)
    ]


def _ranges(before: Sequence[Piece], wanted: Mapping[str, int]) -> dict[str, tuple[HashRange, ...]]:
    if len(wanted) == 1:
        return dict.fromkeys(wanted, (WHOLE,))
    ranges: dict[str, tuple[HashRange, ...]] = {}
    for lo, until, owner in lay_out(before, wanted):
        if owner is not None:
            ranges[owner] = (*ranges.get(owner, ()), HashRange(lo, until - 1))
    return ranges
