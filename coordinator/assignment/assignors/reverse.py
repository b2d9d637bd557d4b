"""Kafka's range and round robin assignors, with the draft KIP's reverse-assign: partitions choose among members.

                                range                                  roundrobin
    5 members, 3 partitions     p0: c1,c2    p1: c3,c4    p2: c5       p0: c1,c4    p1: c2,c5    p2: c3
    3 members, 5 partitions     c1: p0,p1    c2: p2,p3    c3: p4       c1: p0,p3    c2: p1,p4    c3: p2

A topic is reversed if its members that share outnumber its partitions. Members that do not share get none of it. In
all other topics members get whole partitions as in Kafka, unless a member that shares would get nothing: then each
topic with more members than partitions goes first to those that share.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from typing import TypeVar

from coordinator.assignment.assignors.assignor import Assignment, Subscriber, ordered, subscribers
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import TopicPartition

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TopicMembers:
    """A topic with 1 partition or more, and the ids of 1 member or more that may get some of it, sorted."""

    name: str
    partitions: int
    members: tuple[str, ...]


Choice = dict[tuple[str, int], str]
"""(topic, partition) -> its one member."""

Whole = Callable[[Sequence[TopicMembers]], Choice]
"""Assigns each partition to one member."""

Choose = Callable[[Sequence[str], int], list[Sequence[str]]]
"""Of more members than partitions, the members of each partition."""

_Ranges = dict[str, dict[TopicPartition, tuple[HashRange, ...]]]


def _assigned(members: Sequence[Subscriber], partitions: Mapping[str, int], whole: Whole, chosen: Choose) -> Assignment:
    """The assignment by these two choices."""
    sharing = frozenset(m.member for m in members if m.sharing)
    topics = _topics(members, partitions)
    reversed_topics = [t for t in topics if len(sharing.intersection(t.members)) > t.partitions]
    others = [t for t in topics if t not in reversed_topics]
    given: _Ranges = {m.member: {} for m in ordered(members)}
    for topic in reversed_topics:
        _cut(given, topic, chosen([m for m in topic.members if m in sharing], topic.partitions))
    choice = whole(others)
    served = {*choice.values(), *(m for m, ranges in given.items() if ranges)}
    if not served.issuperset(m for t in others for m in t.members if m in sharing):
        choice = whole([_sharing_first(t, sharing) for t in others])
    for (name, p), member in choice.items():
        given[member][TopicPartition(name, p)] = (WHOLE,)
    return given


def _topics(members: Sequence[Subscriber], partitions: Mapping[str, int]) -> list[TopicMembers]:
    of_topics = {t: tuple(m.member for m in of) for t, of in subscribers(members).items() if partitions.get(t)}
    return [TopicMembers(t, partitions[t], of) for t, of in of_topics.items()]


def _cut(given: _Ranges, topic: TopicMembers, chosen: list[Sequence[str]]) -> None:
    for p, members in enumerate(chosen):
        for member, hashes in zip(members, cuts(len(members)), strict=True):
            given[member][TopicPartition(topic.name, p)] = (hashes,)


def _sharing_first(topic: TopicMembers, sharing: frozenset[str]) -> TopicMembers:
    """The topic with at most as many members as partitions; members that do not share leave first."""
    served = sorted(topic.members, key=lambda m: (m not in sharing, m))[: topic.partitions]
    return TopicMembers(topic.name, topic.partitions, tuple(sorted(served)))


class Range:
    """Per topic, consecutive partitions to each member; or consecutive members to each partition."""

    name = "range"
    version = 1

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        """The assignment (see `Assignor.assign`); does not depend on `previous`."""
        return _assigned(members, partitions, _in_runs, _runs)


def _in_runs(topics: Sequence[TopicMembers]) -> Choice:
    return {
        (topic.name, p): member
        for topic in topics
        for member, numbers in zip(topic.members, _runs(range(topic.partitions), len(topic.members)), strict=True)
        for p in numbers
    }


def _runs(things: Sequence[T], holders: int) -> list[Sequence[T]]:
    """`things` in order, cut into one run for each holder; the first runs are one longer."""
    each, more = divmod(len(things), holders)
    bounds = [i * each + min(i, more) for i in range(holders + 1)]
    return [things[lo:hi] for lo, hi in pairwise(bounds)]


class RoundRobin:
    """Members take turns over the partitions of all topics; or partitions over members.

    A member that does not subscribe to a topic loses that turn.
    """

    name = "roundrobin"
    version = 1

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        """The assignment (see `Assignor.assign`); does not depend on `previous`."""
        return _assigned(members, partitions, _by_turns, lambda of, count: [of[p::count] for p in range(count)])


def _by_turns(topics: Sequence[TopicMembers]) -> Choice:
    turns = cycle(sorted({m for topic in topics for m in topic.members}))
    return {(t.name, p): next(m for m in turns if m in t.members) for t in topics for p in range(t.partitions)}
