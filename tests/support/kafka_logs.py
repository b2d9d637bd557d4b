"""A `KafkaLog` for tests, and a small log whose times are known."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from kafka import KafkaAdminClient
from kafka import TopicPartition as KafkaTopicPartition

from coordinator.kafka.log import KafkaLog
from coordinator.values.log import Log
from coordinator.values.offset_spec import OffsetSpec
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import Bounds, Subscription, Topic, TopicPartition
from topics import Kafka, Record

T0 = int(time.time() * 1000) - 60_000
"""A minute ago, in ms: so that no broker's retention deletes the records below."""

THREE_SECONDS = [Record(value, timestamp_ms=T0 + ms) for value, ms in ((b"a", 1000), (b"b", 2000), (b"c", 3000))]


def kafka_log(
    bootstrap: str,
    settings: Mapping[str, object] | None = None,
    fail_on_data_loss: bool = True,
    patience_ms: int = 10_000,
) -> KafkaLog:
    arguments = {"bootstrap_servers": bootstrap, **(settings or {})}
    how = {"retries": 3, "retry_interval_ms": 200, "patience_ms": patience_ms}
    return KafkaLog(arguments, fail_on_data_loss=fail_on_data_loss, **how)


def delete_records(kafka: Kafka, tp: TopicPartition, before: int) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap)) as admin:
        admin.delete_records({KafkaTopicPartition(*tp): before})


@dataclass
class Through:
    """A log with the answers of another log, except those that a test overrides."""

    log: Log

    def topics(self, subscription: Subscription, *, quick: bool = False) -> dict[str, Topic]:
        return self.log.topics(subscription, quick=quick)

    def bounds(
        self, partitions: Iterable[TopicPartition], beginnings: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, Bounds]:
        return self.log.bounds(partitions, beginnings)

    def bounds_now(
        self, partitions: Iterable[TopicPartition], beginnings: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, Bounds]:
        return self.bounds(partitions, beginnings)

    def watch(self, ends: Mapping[TopicPartition, int], wake: Callable[[], None]) -> int:
        return 0  # a wait then takes its whole time

    def cluster_policies(self) -> tuple[str, Mapping[str, str]]:
        return self.log.cluster_policies()

    def ends_of_epochs(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return self.log.ends_of_epochs(epochs)

    def high_watermarks_now(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self.log.high_watermarks_now(partitions)

    def first_times(self, stretches: Mapping[TopicPartition, OffsetRange]) -> dict[TopicPartition, int | None]:
        return self.log.first_times(stretches)

    def resolve(self, spec: OffsetSpec, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self.log.resolve(spec, partitions)

    def leader_racks(self, topics: Iterable[str]) -> dict[TopicPartition, str]:
        return self.log.leader_racks(topics)

    def must_hold_offsets(self, group: str) -> None:
        self.log.must_hold_offsets(group)

    def group_offsets(self, group: str, *, patient: bool = True) -> dict[TopicPartition, tuple[int, str]]:
        return self.log.group_offsets(group, patient=patient)

    def commit_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, tuple[int, str]], *, patient: bool = True
    ) -> bool:
        return self.log.commit_group_offsets(group, offsets, patient=patient)

    def delete_group_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        self.log.delete_group_offsets(group, partitions)

    def close(self) -> None:
        self.log.close()


@dataclass
class Lower(Through):
    """A real log with the high watermarks of new leaders, whose followers have not fetched yet."""

    marks: dict[TopicPartition, int] = field(default_factory=dict)

    def bounds(
        self, partitions: Iterable[TopicPartition], beginnings: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, Bounds]:
        found = self.log.bounds(partitions, beginnings)
        return {tp: b._replace(end=min(b.end, self.marks.get(tp, b.end))) for tp, b in found.items()}

    def high_watermarks_now(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        found = self.log.high_watermarks_now(partitions)
        return {tp: min(end, self.marks.get(tp, end)) for tp, end in found.items()}


@dataclass
class Elected(Through):
    """A real log whose leaders begin where `began` says: an election is unclean if that lies below the log's end.

    With `behind`, a former leader answers, which knows of no election.
    """

    began: dict[TopicPartition, list[int]] = field(default_factory=dict)
    behind: bool = False

    def elect(self, tp: TopicPartition, at: int) -> None:
        self.began.setdefault(tp, []).append(at)

    def bounds(
        self, partitions: Iterable[TopicPartition], beginnings: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, Bounds]:
        found = self.log.bounds(partitions, beginnings)
        epochs = {tp: 0 if self.behind else len(self.began.get(tp, ())) for tp in found}
        return {tp: Bounds(b.beginning, b.end, epochs[tp]) for tp, b in found.items()}

    def cluster_policies(self) -> tuple[str, Mapping[str, str]]:
        return self.log.cluster_policies()

    def ends_of_epochs(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        ends = {tp: b.end for tp, b in self.log.bounds(epochs).items()}
        return {tp: min([*self.began.get(tp, [])[epoch:], ends[tp]]) for tp, epoch in epochs.items()}


@dataclass
class Unmirrored(Through):
    """A real log whose groups somebody else has."""

    def group_offsets(self, group: str, *, patient: bool = True) -> dict[TopicPartition, tuple[int, str]]:
        return {}

    def commit_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, tuple[int, str]], *, patient: bool = True
    ) -> bool:
        return False


@dataclass
class Silent(Through):
    """A real log; the leaders of some partitions do not answer, for so many looks. Whoever waits for them fails."""

    partitions: set[TopicPartition] = field(default_factory=set)
    looks: int = 1_000_000

    def high_watermarks_now(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self.log.high_watermarks_now([tp for tp in partitions if self.looks < 0 or tp not in self.partitions])

    def resolve(self, spec: OffsetSpec, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self.log.resolve(spec, self._answered(partitions))

    def bounds(
        self, partitions: Iterable[TopicPartition], beginnings: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, Bounds]:
        return self.log.bounds(self._answered(partitions), beginnings)

    def ends_of_epochs(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        self._answered(epochs)
        return self.log.ends_of_epochs(epochs)

    def _answered(self, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        wanted = set(partitions)
        assert self.looks < 0 or wanted.isdisjoint(self.partitions), "somebody waits for a silent leader"
        return wanted

    def bounds_now(
        self, partitions: Iterable[TopicPartition], beginnings: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, Bounds]:
        self.looks -= 1
        away = self.partitions if self.looks >= 0 else set()
        return self.log.bounds([tp for tp in partitions if tp not in away], beginnings)
