"""Topics and records on a broker, for tests and the demo.

Writes only; the tested code reads.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial

from kafka import IsolationLevel, KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic, OffsetSpec

_TIMEOUT_S = 60
_KNOWN_S = 30


@dataclass(frozen=True, slots=True)
class Record:
    """The fields of a record; without a partition Kafka's own partitioner chooses by key."""

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Kafka:
    """A broker at `bootstrap`; `secure_bootstrap` is the same broker over SASL_SSL, if it has that listener."""

    bootstrap: str
    secure_bootstrap: str | None = None

    def create_topic(
        self, name: str | None = None, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> str:
        """Create a topic and return its name, which is unique in this broker and begins with `name`."""
        unique = f"{name or 'topic'}-{uuid.uuid4().hex[:8]}"
        self._create(unique, partitions, config or {})
        return unique

    def recreate_topic(self, topic: str, partitions: int = 1) -> None:
        """Delete a topic and create an empty one of the same name, which gets another topic id."""
        self.delete_topic(topic)
        self._create(topic, partitions, {})

    def _create(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        wanted = NewTopic(topic, num_partitions=partitions, replication_factor=-1, topic_configs=dict(config))
        with self._admin() as admin:
            admin.create_topics([wanted])
            admin.wait_for_topics([topic])

    def delete_topic(self, topic: str) -> None:
        """Delete a topic with all its records, if it exists; returns once the broker does not list it any more."""
        with self._admin() as admin:
            if topic in admin.list_topics():
                admin.delete_topics([topic])
            _until(lambda: topic not in admin.list_topics(), f"the end of {topic}")

    def add_partitions(self, topic: str, total: int) -> None:
        """Let a topic grow to `total` partitions; returns once the broker describes all of them."""
        with self._admin() as admin:
            admin.create_partitions({topic: NewPartitions(total)})
            _until(lambda: len(admin.describe_topics([topic])[0]["partitions"]) == total, f"{total} of {topic}")

    def configure(self, topic: str, config: Mapping[str, str]) -> None:
        """Set configurations of a topic; returns once the broker describes them."""
        with self._admin() as admin:
            admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(config))])
            asked = ConfigResource(ConfigResourceType.TOPIC, topic)
            _until(lambda: config.items() <= _values(admin.describe_configs([asked])["topic"][topic]), f"{config}")

    def produce(self, topic: str, records: Iterable[Record], *, compression: str | None = None) -> None:
        """Write records in this order, each acknowledged when this returns."""
        with self._plain_producer(compression) as producer:
            _send(producer, topic, records)

    def produce_committed(self, topic: str, records: Iterable[Record], *, compression: str | None = None) -> None:
        """Write records in a transaction that is committed: a marker follows them."""
        with closing(self._transaction(compression)) as producer:
            _send(producer, topic, records)
            producer.commit_transaction()
        self.await_markers(topic)

    @contextmanager
    def open_transaction(self, topic: str, records: Iterable[Record]) -> Iterator[None]:
        """Write records in a transaction that is open in the body of `with`, and committed after it."""
        with closing(self._transaction(None)) as producer:
            _send(producer, topic, records)
            yield
            producer.commit_transaction()
        self.await_markers(topic)

    def produce_aborted(self, topic: str, records: Iterable[Record], *, compression: str | None = None) -> None:
        """Write records in a transaction that is aborted: a marker follows them."""
        with closing(self._transaction(compression)) as producer:
            _send(producer, topic, records)
            producer.abort_transaction()
        self.await_markers(topic)

    def produce_fenced(self, topic: str, records: Iterable[Record]) -> None:
        """Write records in a transaction that the producer's next life aborts, as after a kill.

        That life begins when the marker is in the log.
        """
        name = f"transaction-{uuid.uuid4().hex}"
        with (
            closing(self._producer(transactional_id=name)) as first,
            closing(self._producer(transactional_id=name)) as next_one,
        ):
            first.init_transactions()
            first.begin_transaction()
            _send(first, topic, records)
            next_one.init_transactions()

    def await_markers(self, topic: str) -> None:
        """Wait until no transaction of a topic is open: a broker answers a commit before the marker is in the log.

        A reader with read_committed stops before an open transaction.
        """
        with self._admin() as admin:
            numbers = admin.describe_topics([topic])[0]["partitions"]
            latest = {TopicPartition(topic, each["partition_index"]): OffsetSpec.LATEST for each in numbers}
            ends = partial(admin.list_partition_offsets, latest)
            committed, all_of_it = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
            _until(lambda: ends(committed) == ends(all_of_it), f"the markers in {topic}")

    @contextmanager
    def _admin(self) -> Iterator[KafkaAdminClient]:
        with closing(KafkaAdminClient(bootstrap_servers=self.bootstrap)) as admin:
            yield admin

    @contextmanager
    def _plain_producer(self, compression: str | None) -> Iterator[KafkaProducer]:
        with closing(self._producer(compression_type=compression)) as producer:
            yield producer

    def _producer(self, **settings: object) -> KafkaProducer:
        # a flush ends the lingering: the records between two flushes are few batches, also on a busy machine
        return KafkaProducer(bootstrap_servers=self.bootstrap, batch_size=262_144, linger_ms=1_000, **settings)

    def _transaction(self, compression: str | None) -> KafkaProducer:
        producer = self._producer(transactional_id=f"transaction-{uuid.uuid4().hex}", compression_type=compression)
        producer.init_transactions()
        producer.begin_transaction()
        return producer


def _until(known: Callable[[], bool], what: str) -> None:
    """Wait until a broker knows a change: a controller has answered before it reached that broker."""
    deadline = time.monotonic() + _KNOWN_S
    while not known():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the broker does not know {what} after {_KNOWN_S} s")


def _values(configs: Mapping[str, Mapping[str, str]]) -> set[tuple[str, str]]:
    return {(name, config["value"]) for name, config in configs.items()}


def _send(producer: KafkaProducer, topic: str, records: Iterable[Record]) -> None:
    refused: list[Exception] = []
    last = None
    for each in records:
        last = producer.send(
            topic,
            key=each.key,
            value=each.value,
            partition=each.partition,
            headers=list(each.headers),
            timestamp_ms=each.timestamp_ms,
        ).add_errback(refused.append)
    producer.flush(timeout=_TIMEOUT_S)
    if refused:
        raise refused[0]
    if last is not None:
        last.get(timeout=_TIMEOUT_S)
