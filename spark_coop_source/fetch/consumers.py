"""Kafka consumers of one Python worker, kept open from task to task.

Knows how to open a consumer for known offsets; nothing of the choice of offsets.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition

from coordinator.errors import KafkaUnavailableError
from coordinator.kafka import empty_markers
from coordinator.kafka.client import client_arguments
from coordinator.kafka.connection import ANSWER_BYTES_MAX, BOOTSTRAP_MS, open_client
from coordinator.values.subscription import TopicPartition
from spark_coop_source.fetch import large_reads, raw_batches
from spark_coop_source.fetch.idle_clients import IdleClients, key_of
from spark_coop_source.fetch.patience import Patience

MOST_IDLE = 4
"""Most idle consumers: one for each set of client settings, so rarely more than one."""

OURS: Mapping[str, object] = {
    "group_id": None,
    "enable_auto_commit": False,
    "auto_offset_reset": "none",
    "allow_auto_create_topics": False,
    "receive_message_max_bytes": ANSWER_BYTES_MAX,
}
"""Settings that the promises need: only this project sets positions, no offset is replaced silently, and no record is
too large to come."""

UNLESS_SET: Mapping[str, object] = {
    "max_poll_records": 65_536,
    "fetch_max_wait_ms": 10,
    "max_partition_fetch_bytes": 4 * 1024 * 1024,
    "reconnect_backoff_max_ms": 1_000,
    "bootstrap_timeout_ms": BOOTSTRAP_MS,
}
"""Better defaults to read known offsets, in a task that others wait for.

Answers of 4 MB instead of 1 MB took a third off the CPU time of reading (records of 100 bytes, no codec).

While a request waits at the end of the log, no other partition of the same broker is fetched. So it must not wait long.
"""

_idle: IdleClients[KafkaConsumer] = IdleClients(MOST_IDLE)


MOST_UNFILTERED = 100 * 1024 * 1024
"""Default for the bytes that a task may hold fetched."""


def answer_bytes(most_unfiltered: int) -> int:
    """Most bytes of one answer, and of the part of it that is decoded at a time.

    A task holds the answer in work, the next one, which kafka-python requests ahead, and copies of parts of both.
    """
    return most_unfiltered // 4


LEAST_RECORD_BYTES = 16 * 1024 * 1024
"""Least limit for a compressed record, however small the limit of a task."""


def record_bytes(most_unfiltered: int) -> int:
    """Most bytes of a compressed record: it is decoded whole."""
    return max(most_unfiltered, LEAST_RECORD_BYTES)


def fetch_limits(kafka: Mapping[str, object], most_unfiltered: int) -> dict[str, int]:
    """Most bytes of one answer, and of one partition in it, by kafka-python's names."""
    wanted = {**KafkaConsumer.DEFAULT_CONFIG, **UNLESS_SET, **kafka}
    most = answer_bytes(most_unfiltered)
    return {name: min(int(str(wanted[name])), most) for name in ("max_partition_fetch_bytes", "fetch_max_bytes")}


@contextmanager
def borrowed(
    kafka: Mapping[str, object],
    partitions: Iterable[TopicPartition],
    most_unfiltered: int = MOST_UNFILTERED,
    patience: Patience | None = None,
) -> Iterator[KafkaConsumer]:
    """A consumer with these settings. Its borrower alone uses it; after an error it is closed.

    Raises a `KafkaUnavailableError` if no broker answers: after the first attempt, unless there is `patience`.

    It is assigned to `partitions`, so that one request gets all their leaders. For one topic after another,
    kafka-python would take 100 ms each. It has no position in them yet.
    """
    key = key_of(kafka, most_unfiltered)
    wanted = [KafkaTopicPartition(*tp) for tp in partitions]
    consumer = _idle.take(key) or _opened(kafka, most_unfiltered, wanted, patience or Patience())
    try:
        consumer.assign(wanted)
        yield consumer
    except Exception:
        consumer.close()
        raise
    except GeneratorExit:  # the task ended early, as under a LIMIT; the consumer is usable
        _idle.keep(key, consumer)
        raise
    _idle.keep(key, consumer)


def close_idle() -> None:
    """Close every consumer that is not borrowed."""
    _idle.close()


def _opened(
    kafka: Mapping[str, object], most_unfiltered: int, wanted: Collection[KafkaTopicPartition], patience: Patience
) -> KafkaConsumer:
    limits = fetch_limits(kafka, most_unfiltered)
    arguments = {**UNLESS_SET, **client_arguments(kafka), **OURS, **limits}
    began = monotonic()
    while True:
        try:
            consumer, _ = open_client(KafkaConsumer, arguments, {tp.topic for tp in wanted})
            break
        except KafkaUnavailableError as error:
            patience.wait(error, began, f"the records of {len(wanted)} partitions")
    empty_markers.install(consumer)
    raw_batches.install(consumer)
    large_reads.install(consumer)
    return consumer
