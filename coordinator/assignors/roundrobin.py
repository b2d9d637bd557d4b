"""Kafka's round robin assignor, and the draft KIP's reverse-assign where members that share outnumber partitions.

    5 members, 3 partitions     p0: c1,c4    p1: c2,c5    p2: c3
    3 members, 5 partitions     c1: p0,p3    c2: p1,p4    c3: p2

Members take turns over all partitions of all topics, as in Kafka: one round for all topics, and who does
not subscribe to a topic is passed over for it and loses that turn.
"""

from collections.abc import Mapping, Sequence
from itertools import cycle

from coordinator.assignors.assignor import Assignment, Subscriber
from coordinator.assignors.reverse import Choice, TopicMembers, assign_topics


class RoundRobin:
    """Members take turns over partitions; or partitions over members."""

    name = "roundrobin"
    version = 1

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        """The assignment (see `Assignor.assign`); does not depend on `previous`."""
        return assign_topics(members, partitions, _whole, _chosen)


def _whole(topics: Sequence[TopicMembers]) -> Choice:
    turns = cycle(sorted({m for topic in topics for m in topic.members}))
    choice: Choice = {}
    for topic in topics:
        allowed = frozenset(topic.members)
        for p in range(topic.partitions):
            choice[topic.name, p] = next(m for m in turns if m in allowed)
    return choice


def _chosen(members: Sequence[str], partitions: int) -> list[list[str]]:
    return [list(members[p::partitions]) for p in range(partitions)]
