"""What `range` and `roundrobin` share: which topics are reversed, and what becomes of a choice.

Where the members of a topic that share outnumber its partitions, partitions choose among them, and who
does not share gets none of it (the draft KIP's reverse-assign). In all other topics members get whole partitions
exactly as in Kafka, unless that would leave a member that shares without anything: then each topic with
more members than partitions goes to those that share first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from coordinator.assignors.assignor import Assignment, Subscriber, ordered
from coordinator.key_hash import cuts
from coordinator.ranges import WHOLE, HashRange
from coordinator.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class TopicMembers:
    """A topic with 1 partition or more, and the ids of 1 member or more that may get some of it, sorted."""

    name: str
    partitions: int
    members: tuple[str, ...]


Choice = dict[tuple[str, int], str]
"""(topic, partition) -> its one member."""

Whole = Callable[[Sequence[TopicMembers]], Choice]
"""Gives each partition to one member."""

Chosen = Callable[[Sequence[str], int], list[list[str]]]
"""Of more members than partitions, the members of each partition."""

_Ranges = dict[str, dict[TopicPartition, tuple[HashRange, ...]]]


def assign_topics(
    members: Sequence[Subscriber], partitions: Mapping[str, int], whole: Whole, chosen: Chosen
) -> Assignment:
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
    subscribers: dict[str, list[str]] = {}
    for m in ordered(members):
        for topic in m.topics:
            subscribers.setdefault(topic, []).append(m.member)
    return [TopicMembers(t, partitions[t], tuple(subscribers[t])) for t in sorted(subscribers) if partitions.get(t)]


def _cut(given: _Ranges, topic: TopicMembers, chosen: list[list[str]]) -> None:
    for p, members in enumerate(chosen):
        for member, hashes in zip(members, cuts(len(members)), strict=True):
            given[member][TopicPartition(topic.name, p)] = (hashes,)


def _sharing_first(topic: TopicMembers, sharing: frozenset[str]) -> TopicMembers:
    """The topic with no more members than partitions, if it has too many those that do not share leave first."""
    served = sorted(topic.members, key=lambda m: (m not in sharing, m))[: topic.partitions]
    return TopicMembers(topic.name, topic.partitions, tuple(sorted(served)))
