"""Writes records to Kafka as they were: with null keys, null values, null header values and their timestamps.

    send -> buffer -> kafka-python's thread -> broker, acks=all and idempotent
    flush            waits for all of them, and raises the first failure

A producer that failed is closed, never used again: kafka-python may have dropped records of it. Knows kafka-python's
producer; nothing of the choice of records. One thread at a time may use it.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from kafka import KafkaProducer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.errors import KafkaError
from kafka.producer.future import FutureRecordMetadata

from coordinator.errors import CoopKafkaError
from coordinator.kafka import internals
from coordinator.kafka.client import arguments_of
from coordinator.kafka.connection import BACKOFF_MS, SHORT_PATIENCE_MS, open_client, servers_of
from coordinator.kafka.errors import explained, not_written
from coordinator.kafka.writable import check_writable
from coordinator.values.dead_letter import Header
from coordinator.values.subscription import TopicPartition

DELIVERY_MS = 120_000
"""A record that no broker took within this time is a failure. It is Java's default."""

MOST_UNSENT = 8 * 1024 * 1024
"""Bytes of records that may wait: `send` flushes beyond it. kafka-python's buffer has no limit."""

_OVERHEAD = 100  # bytes of a record beside its fields, at most

OURS: Mapping[str, object] = {
    "acks": "all",
    "enable_idempotence": True,
    "allow_auto_create_topics": False,
    "linger_ms": 0,
}
"""Settings that the promises need."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to write. `repr` shows its places, not its content."""

    to: TopicPartition
    key: bytes | None = field(repr=False)
    value: bytes | None = field(repr=False)
    headers: tuple[Header, ...] = field(repr=False)
    timestamp_ms: int | None  # None: now
    about: str  # the record in errors

    @property
    def size(self) -> int:
        """Bytes of its fields, about as Kafka counts them."""
        of_headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + of_headers


class _Headers(list[Header]):
    """Is false in a condition: kafka-python 3.0 takes the lengths of header values without a check for null ones."""

    def __bool__(self) -> bool:
        return False


class RecordProducer:
    """A producer of one user at one cluster, connected when it is made."""

    def __init__(
        self, kafka: Mapping[str, object], topics: Iterable[str], more: Mapping[str, object] | None = None
    ) -> None:
        """`kafka`: the Kafka arguments of a query's consumers. `more`: arguments of a `KafkaProducer`.

        Raises `LogError`s and `ConfigurationError`s, also if the user may not write to all of `topics`.
        """
        self.servers = servers_of(kafka)
        self._unsent: list[tuple[Outgoing, FutureRecordMetadata]] = []
        self._unsent_bytes = 0
        wanted = set(topics)
        for topic in wanted:
            check_writable(kafka, topic)
        known = arguments_of(KafkaProducer, kafka)
        request_ms = int(str(known.get("request_timeout_ms", KafkaProducer.DEFAULT_CONFIG["request_timeout_ms"])))
        defaults = {"bootstrap_timeout_ms": SHORT_PATIENCE_MS, "reconnect_backoff_max_ms": BACKOFF_MS}
        delivery = {"delivery_timeout_ms": max(DELIVERY_MS, request_ms)}
        arguments = {**defaults, **delivery, **known, **(more or {}), **OURS}
        self.kafka, _ = open_client(KafkaProducer, arguments, wanted)

    def partitions(self, topic: str) -> int:
        """The number of partitions of a topic, at most `metadata_max_age_ms` old. Raises `LogError`s."""
        try:
            return len(self.kafka.partitions_for(topic))
        except (KafkaError, OSError) as error:
            raise explained(error, f"the partitions of topic {topic!r}", self.servers) from None

    def send(self, record: Outgoing) -> None:
        """Write a record soon; records of one partition in this order. Raises the first failure so far, as `flush`.

        kafka-python's own `send` refuses a record with neither key nor value, and null header values.
        """
        to = KafkaTopicPartition(*record.to)
        self.partitions(to.topic)  # kafka-python sends to leaders of the topics that it was asked for
        fields = record.timestamp_ms, record.key, record.value
        future = internals.append(self.kafka, to, fields, _Headers(record.headers))
        self._unsent.append((record, future))
        self._unsent_bytes += record.size + _OVERHEAD
        if self._unsent_bytes > MOST_UNSENT:
            self.flush()

    def flush(self) -> None:
        """Wait until Kafka has every record. Raises the first failure: a `LogError`, which names the record."""
        timeout_s = 2 * self.kafka.config["delivery_timeout_ms"] / 1000
        for record, future in self._unsent:
            try:
                future.get(timeout_s)
            except (KafkaError, OSError) as error:
                raise _failure(error, record, self.servers) from None
        self._unsent, self._unsent_bytes = [], 0

    def close(self) -> None:
        """End it. Records that were not flushed may be written or not."""
        if self._unsent:
            internals.drop_unsent(self.kafka)
        with suppress(KafkaError):
            self.kafka.close(timeout=10)


def _failure(error: BaseException, record: Outgoing, servers: str) -> CoopKafkaError:
    return not_written(error, record.about, record.to.topic, record.size, servers)
