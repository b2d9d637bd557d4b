"""Joined topics get the same cuts and owners.

Topics with the same subscribers and the same number of partitions count as joined: partition 3 of each
belongs to the same members, cut at the same hashes, so that a join by key finds both sides in one
member. Each such set of topics is shared as `grouped` shares one topic, in proportion to capacity.
"""

from collections.abc import Mapping, Sequence

from coordinator.assignors.assignor import Assignment, Subscriber, ordered
from coordinator.assignors.grouped import Grouped
from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition

_Ranges = dict[str, dict[TopicPartition, tuple[HashRange, ...]]]


class Copartitioned:
    """`grouped`, the same for all topics that are joined."""

    name = "copartitioned"
    version = 1

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        """The assignment (see `Assignor.assign`); the same again if `previous` is its own for the same input."""
        given: _Ranges = {m.member: {} for m in ordered(members)}
        before = _by_topic(previous)
        for subscribers, count, topics in _joined(members, partitions):
            model = max(topics, key=lambda t: _held(before.get(t, {})))
            some = [Subscriber(m.member, m.capacity, frozenset({model}), m.sharing) for m in subscribers]
            for member, owned in Grouped().assign(some, {model: count}, before.get(model, {})).items():
                given[member] |= {TopicPartition(t, tp.partition): r for t in topics for tp, r in owned.items()}
        return given


def _joined(
    members: Sequence[Subscriber], partitions: Mapping[str, int]
) -> list[tuple[list[Subscriber], int, list[str]]]:
    """Subscribers, number of partitions, and the topics of which that is true, sorted."""
    subscribers: dict[str, list[Subscriber]] = {}
    for m in ordered(members):
        for topic in m.topics:
            subscribers.setdefault(topic, []).append(m)
    joined: dict[tuple[tuple[str, ...], int], list[str]] = {}
    for topic in sorted(t for t in subscribers if partitions.get(t)):
        joined.setdefault((tuple(m.member for m in subscribers[topic]), partitions[topic]), []).append(topic)
    return [(subscribers[topics[0]], count, topics) for (_, count), topics in joined.items()]


def _by_topic(previous: Assignment) -> dict[str, _Ranges]:
    topics: dict[str, _Ranges] = {}
    for member, owned in previous.items():
        for tp, ranges in owned.items():
            topics.setdefault(tp.topic, {}).setdefault(member, {})[tp] = ranges
    return topics


def _held(previous: _Ranges) -> int:
    """How much of a topic was assigned: the topic that had most is the model for topics that join it."""
    return sum(h.size for owned in previous.values() for ranges in owned.values() for h in ranges)
