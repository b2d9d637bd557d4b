"""The edges the coordinator needs, as protocols: the log (Kafka), the store (Redis), the clock."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from coordinator.offset_spec import OffsetSpec
from coordinator.ranges import OffsetRange
from coordinator.subscription import Bounds, Subscription, Topic, TopicPartition

Offsets = Mapping[TopicPartition, int]


class Log(Protocol):
    """Kafka as the driver sees it. Every call talks to a broker; errors are `LogError`s."""

    def topics(self, subscription: Subscription) -> dict[str, Topic]:
        """The topics a subscription means now, by name.

        A topic that is subscribed to by name and does not exist raises `UnknownTopicError`, so does
        an assigned partition that the topic does not have; a pattern may match nothing. For
        `Assigned`, `Topic.partitions` holds only the assigned partitions.
        """

    def bounds(
        self, partitions: Iterable[TopicPartition], beginnings: Offsets | None = None
    ) -> dict[TopicPartition, Bounds]:
        """Beginning and end of each partition's log, with the leader epoch under which the end was told.

        Only the ends are asked for where `beginnings` are known.
        """

    def ends_of_epochs(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where, in each log as it is now, the records of that leader epoch and older ones end.

        Partitions whose leader knows nothing of leader epochs are left out.
        """

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The end of each partition's log, whatever isolation reads have: records of open transactions lie below it."""

    def resolve(self, spec: OffsetSpec, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset that `spec` means in each of `partitions`, by Spark's rules for it."""

    def first_times(self, stretches: Mapping[TopicPartition, OffsetRange]) -> dict[TopicPartition, int]:
        """The time, in milliseconds, of the first record that is left in each stretch; none where there is none."""

    def group_offsets(self, group: str) -> dict[TopicPartition, tuple[int, str]]:
        """What Kafka's own group of that name has committed: offset and metadata text."""

    def commit_group_offsets(self, group: str, offsets: Mapping[TopicPartition, tuple[int, str]]) -> bool:
        """Commit to Kafka's own group; False if plain consumers live in it, which forbids that."""

    def close(self) -> None:
        """Drop the connections."""
