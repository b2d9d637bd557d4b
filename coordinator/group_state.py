"""What Redis holds of a group, as values: for the CLI, the views and the tests that look from outside."""

from collections.abc import Mapping
from dataclasses import dataclass

from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A topic as the group recorded it."""

    id: str
    partitions: int

    def __str__(self) -> str:
        return f"{self.id} {self.partitions}"


@dataclass(frozen=True, slots=True)
class GroupState:
    """One look at a group; not a transaction, members may write between two of its parts."""

    now_ms: int  # Redis TIME
    meta: Mapping[str, str]
    leases_ms: Mapping[str, int]  # member -> lease end
    members: Mapping[str, Mapping[str, str]]
    topics: Mapping[str, KnownTopic]
    segments: Mapping[TopicPartition, tuple[tuple[HashRange, int], ...]]  # with positions
    owners: Mapping[TopicPartition, tuple[tuple[HashRange, str, str], ...]]  # with lane epoch and member
    stable: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
