"""What an assignor is: from members, partition counts and the previous assignment to ranges per member.

Values only; knows nothing of Redis, leases or lane epochs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member as an assignor sees it.

    `capacity` is how much of the group's work it wants, 1 or more. `sharing` is its
    `allow.individual.commit`: without it, it takes whole partitions or nothing. `metadata` is free
    (host, rack, labels).
    """

    member: str
    capacity: int
    topics: frozenset[str]
    sharing: bool = True
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)


Assignment = Mapping[str, Mapping[TopicPartition, tuple[HashRange, ...]]]
"""Member -> its ranges of each partition, ascending and disjoint."""


class Assignor(Protocol):
    """A strategy, known by its name; a pure function, so that any member as leader computes the same.

    `version` grows when the same input gives another result; members agree on (name, version).
    """

    name: str
    version: int

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        """The whole assignment: each partition of each topic that a member subscribes to, tiled exactly.

        `partitions` is the number of partitions by topic. `previous` may name members and partitions
        that are gone; it need not tile anything.
        """
        ...


def ordered(members: Sequence[Subscriber]) -> list[Subscriber]:
    """The members by id: what comes first never depends on who joined first."""
    return sorted(members, key=lambda m: m.member)


def topic_partitions(topic: str, count: int) -> list[TopicPartition]:
    """The partitions of a topic, ascending."""
    return [TopicPartition(topic, p) for p in range(count)]
