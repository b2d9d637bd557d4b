"""The subscription of a query: topics by name, by pattern, or assigned partitions with key ranges.

`kafka.log` resolves them against a broker.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from coordinator.values.ranges import HashRange

POLICIES = "coop-kafka-policies"
"""The topic of the Kafka cluster's policies. No pattern matches it."""

NO_ID = "-"
"""The id of a topic where brokers name none: before Kafka 2.8."""


class TopicPartition(NamedTuple):
    """A partition of a topic; orders by topic, then number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


OffsetByPartition = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Topics:
    """Topics by name (`subscribe`)."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """All topics with a match of a regular expression anywhere in their names, as in Spark (`subscribePattern`)."""

    regex: str


@dataclass(frozen=True, slots=True)
class Assigned:
    """Assigned partitions, each with the hash ranges to read (`assign`): the whole space in Spark's own form."""

    partitions: Mapping[TopicPartition, tuple[HashRange, ...]]
    pinned: bool = False  # it names key ranges, or whole partitions in that form: a group assigns no others


Subscription = Topics | Pattern | Assigned


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the broker describes it now."""

    name: str
    id: str  # Kafka's topic id as text, or `NO_ID`; a re-created topic has another one
    partitions: tuple[int, ...]  # ascending; of `Assigned`, the assigned ones
    total: int = 0  # the number of partitions in Kafka, if they are more
    waiting: int = 0  # partitions left out until all topics of copartition have as many (rule: joined-topics)

    @property
    def count(self) -> int:
        """The number of its partitions in Kafka."""
        return max(self.total, self.partitions[-1] + 1)


class Bounds(NamedTuple):
    """The part of a partition's log that can be read now: [beginning, end)."""

    beginning: int
    end: int  # last stable offset under read_committed, else the high watermark
    epoch: int = -1  # the leader epoch of the end; -1 if the broker reported none
