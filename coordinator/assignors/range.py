"""Kafka's range assignor, and the draft KIP's reverse-assign where members that share outnumber partitions.

    5 members, 3 partitions     p0: c1,c2    p1: c3,c4    p2: c5
    3 members, 5 partitions     c1: p0,p1    c2: p2,p3    c3: p4

Either way consecutive ones go together, the first ones getting one more where it does not come out even.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from coordinator.assignors.assignor import Assignment, Subscriber
from coordinator.assignors.reverse import Choice, TopicMembers, assign_topics


class Range:
    """Per topic, consecutive partitions to each member; or consecutive members to each partition."""

    name = "range"
    version = 1

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        """The assignment (see `Assignor.assign`); does not depend on `previous`."""
        return assign_topics(members, partitions, _whole, _chosen)


def _whole(topics: Sequence[TopicMembers]) -> Choice:
    return {
        (topic.name, p): member
        for topic in topics
        for member, numbers in zip(topic.members, _runs(topic.partitions, len(topic.members)), strict=True)
        for p in numbers
    }


def _chosen(members: Sequence[str], partitions: int) -> list[list[str]]:
    return [[members[i] for i in run] for run in _runs(len(members), partitions)]


def _runs(things: int, holders: int) -> list[range]:
    """`things` in order, cut into one run per holder; the first ones get one more."""
    each, more = divmod(things, holders)
    bounds = [i * each + min(i, more) for i in range(holders + 1)]
    return [range(lo, hi) for lo, hi in pairwise(bounds)]
