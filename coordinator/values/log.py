"""Kafka as the coordinator needs it: a protocol. `coordinator/kafka/log.py` fulfils it, and so does the simulation."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from coordinator.values.offset_spec import OffsetSpec
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import Bounds, OffsetByPartition, Subscription, Topic, TopicPartition


class Log(Protocol):
    """Kafka as the driver sees it. Every call talks to a broker; errors are `LogError`s."""

    def topics(self, subscription: Subscription, *, quick: bool = False) -> dict[str, Topic]:
        """The topics a subscription means now, by name; of a pattern perhaps without new ones, if `quick`.

        A topic that is subscribed to by name and does not exist raises `UnknownTopicError`, so does
        an assigned partition that the topic does not have; a pattern may match nothing. For
        `Assigned`, `Topic.partitions` holds only the assigned partitions.
        """

    def bounds(
        self, partitions: Iterable[TopicPartition], beginnings: OffsetByPartition | None = None
    ) -> dict[TopicPartition, Bounds]:
        """Beginning and end of each partition's log, with the leader epoch from the same answer as the end.

        Only the ends are asked for where `beginnings` are known.
        """

    def bounds_now(
        self, partitions: Iterable[TopicPartition], beginnings: OffsetByPartition | None = None
    ) -> dict[TopicPartition, Bounds]:
        """The same of the partitions whose leader answers now. Raises once one has not answered for too long."""

    def watch(self, ends: OffsetByPartition, wake: Callable[[], None]) -> int:
        """Call `wake`, perhaps in another thread, once one of these logs has a record at its end; or never.

        Returns for how many milliseconds it watches all of them, 0 if it does not: a guess, never a promise.
        """

    def ends_of_epochs(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where, in each log as it is now, the records of that leader epoch and older ones end.

        Partitions whose leader knows nothing of leader epochs are left out.
        """

    def high_watermarks_now(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The log ends of the partitions whose leader answers now, whatever isolation reads have.

        Records of open transactions lie below them.
        """

    def resolve(self, spec: OffsetSpec, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset that `spec` means in each of `partitions`, by Spark's rules for it."""

    def first_times(self, stretches: Mapping[TopicPartition, OffsetRange]) -> dict[TopicPartition, int | None]:
        """The time, in milliseconds, of the first record that is left in each stretch; None where there is none.

        Without the partitions whose leader does not answer.
        """

    def leader_racks(self, topics: Iterable[str]) -> dict[TopicPartition, str]:
        """The rack of each partition's leader, where the broker names one; topics that do not exist are left out."""

    def must_hold_offsets(self, group: str) -> None:
        """Raise `GroupTypeError` if Kafka's own group of that name is of a type that cannot hold offsets of ours."""

    def group_offsets(self, group: str, *, patient: bool = True) -> dict[TopicPartition, tuple[int, str]]:
        """What Kafka's own group of that name has committed: offset and metadata text. Not `patient`: asked once."""

    def commit_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, tuple[int, str]], *, patient: bool = True
    ) -> bool:
        """Commit to Kafka's own group; False if plain consumers live in it, which forbids that."""

    def delete_group_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete the offsets of these partitions from Kafka's own group, and the group too if it is then empty."""

    def cluster_policies(self) -> tuple[str, Mapping[str, str]]:
        """The policies of the whole Kafka cluster, by name, with a version that only grows; empty if there are none.

        Raises `KafkaAccessError` if this user may not read them.
        """

    def close(self) -> None:
        """Drop the connections."""
