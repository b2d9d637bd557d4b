"""Joined topics get the same cuts and owners (G; spec 4.1).

Topics with the same subscribers and the same number of partitions count as joined: partition 3 of each
belongs to the same members, cut at the same hashes, so that a join by key finds both sides in one
member. Each such set of topics is shared as `grouped` shares one topic, in proportion to capacity.
"""

from collections.abc import Mapping, Sequence

from coordinator.assignors.assignor import Assignment, Subscriber, ordered
from coordinator.assignors.grouped import Grouped
from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition


class Copartitioned:
    """`grouped`, the same for all topics that are joined."""

    name = "copartitioned"
    version = 1

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        """The assignment (see `Assignor.assign`); the same again if `previous` is its own for the same input."""
        given: dict[str, dict[TopicPartition, tuple[HashRange, ...]]] = {m.member: {} for m in ordered(members)}
        for (subscribers, count), topics in sorted(_joined(members, partitions).items()):
            model = max(topics, key=lambda t: _held(previous, t))
            some = [
                Subscriber(m.member, m.capacity, frozenset({model}), m.sharing)
                for m in members
                if m.member in subscribers
            ]
            for member, owned in Grouped().assign(some, {model: count}, previous).items():
                given[member] |= {TopicPartition(t, tp.partition): r for t in topics for tp, r in owned.items()}
        return given


def _joined(
    members: Sequence[Subscriber], partitions: Mapping[str, int]
) -> dict[tuple[tuple[str, ...], int], list[str]]:
    """(subscribers, number of partitions) -> the topics of which that is true, sorted."""
    joined: dict[tuple[tuple[str, ...], int], list[str]] = {}
    for topic in sorted({t for m in members for t in m.topics if partitions.get(t)}):
        subscribers = tuple(m.member for m in ordered(members) if topic in m.topics)
        joined.setdefault((subscribers, partitions[topic]), []).append(topic)
    return joined


def _held(previous: Assignment, topic: str) -> int:
    """How much of the topic was assigned: the topic that had most is the model for topics that join it."""
    return sum(
        h.size for owned in previous.values() for tp, ranges in owned.items() if tp.topic == topic for h in ranges
    )
