"""Assignors: from members, partition counts and the previous assignment to the ranges of each member.

Values only, without Redis, leases and lane epochs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member as an assignor sees it.

    `capacity` is its share of the group's work, 1 or more. `sharing` is false with `sharing=partitions`: then it
    gets whole partitions or nothing. `metadata` is free (host, rack, labels).
    """

    member: str
    capacity: int
    topics: frozenset[str]
    sharing: bool = True
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)


Assignment = Mapping[str, Mapping[TopicPartition, tuple[HashRange, ...]]]
"""Member -> its ranges of each partition, ascending and disjoint."""


class Assignor(Protocol):
    """A named strategy: a pure function, so that every member computes the same.

    A new `version` has other results for the same input; members agree on (name, version).
    """

    name: str
    version: int

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        """The whole assignment: it tiles each partition of each topic that a member subscribes to.

        `partitions` is the number of partitions by topic. `previous` may name members and partitions that no longer
        exist, and need not tile anything.
        """


def ordered(members: Sequence[Subscriber]) -> list[Subscriber]:
    """The members by id: their order does not depend on their joins."""
    return sorted(members, key=lambda m: m.member)


def subscribers(members: Sequence[Subscriber]) -> dict[str, list[Subscriber]]:
    """The subscribers of each topic, by id; topics in order."""
    found = ordered(members)
    return {t: [m for m in found if t in m.topics] for t in sorted({t for m in members for t in m.topics})}


def topic_partitions(topic: str, count: int) -> list[TopicPartition]:
    """The partitions of a topic, ascending."""
    return [TopicPartition(topic, p) for p in range(count)]
