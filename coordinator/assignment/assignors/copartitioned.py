"""Topics that are joined get the same cuts and owners.

Topics with the same subscribers and the same number of partitions count as joined: partition 3 of each belongs to the
same members, cut at the same hashes. So a join by key has both sides in one member. `grouped` assigns one of the
topics, in proportion to capacity.
"""

from collections.abc import Mapping, Sequence

from coordinator.assignment.assignors.assignor import Assignment, Subscriber, ordered, subscribers
from coordinator.assignment.assignors.grouped import Grouped
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition

_Ranges = dict[str, dict[TopicPartition, tuple[HashRange, ...]]]


class Copartitioned:
    """`grouped`, the same for all joined topics."""

    name = "copartitioned"
    version = 1

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        """The assignment (see `Assignor.assign`); the same again if `previous` is its own for the same input."""
        given: _Ranges = {m.member: {} for m in ordered(members)}
        before = _by_topic(previous)
        for joined, count, topics in _joined(members, partitions):
            model = max(topics, key=lambda t: _held(before.get(t, {})))
            some = [Subscriber(m.member, m.capacity, frozenset({model}), m.sharing) for m in joined]
            for member, owned in Grouped().assign(some, {model: count}, before.get(model, {})).items():
                given[member] |= {TopicPartition(t, tp.partition): r for t in topics for tp, r in owned.items()}
        return given


def _joined(
    members: Sequence[Subscriber], partitions: Mapping[str, int]
) -> list[tuple[list[Subscriber], int, list[str]]]:
    """Subscribers, number of partitions, and the topics that have both, sorted."""
    joined: dict[tuple[tuple[str, ...], int], tuple[list[Subscriber], int, list[str]]] = {}
    for topic, of_topic in subscribers(members).items():
        if count := partitions.get(topic):
            key = tuple(m.member for m in of_topic), count
            joined.setdefault(key, (of_topic, count, []))[2].append(topic)
    return list(joined.values())


def _by_topic(previous: Assignment) -> dict[str, _Ranges]:
    topics: dict[str, _Ranges] = {}
    for member, owned in previous.items():
        for tp, ranges in owned.items():
            topics.setdefault(tp.topic, {}).setdefault(member, {})[tp] = ranges
    return topics


def _held(previous: _Ranges) -> int:
    """The assigned hashes of a topic: the topic with the most is the model for topics that join it."""
    return sum(h.size for owned in previous.values() for ranges in owned.values() for h in ranges)
