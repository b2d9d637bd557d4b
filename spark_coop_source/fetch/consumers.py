"""Kafka consumers of one Python worker, kept open from task to task.

Connecting costs more than a small batch, and Spark's workers outlive their tasks. Knows how a
consumer is opened for reading given offsets; nothing of which offsets.
"""

import atexit
import pickle
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition

from coordinator.kafka import empty_markers
from coordinator.kafka.client import client_arguments
from coordinator.kafka.connection import open_client
from coordinator.subscription import TopicPartition
from spark_coop_source.fetch import large_reads, raw_batches

MOST_IDLE = 4
"""Consumers kept while no task uses them: one for each set of client settings, so rarely more than one."""

IDLE_S = 60.0
"""A consumer that was idle for longer is not used again.

The broker closes idle connections after some minutes, and so may what lies between; kafka-python then
asked nobody for 20 seconds and more. A new connection costs a fraction of a second.
"""

OURS: Mapping[str, object] = {
    "group_id": None,
    "enable_auto_commit": False,
    "auto_offset_reset": "none",
    "allow_auto_create_topics": False,
}
"""What the promises rest on: positions are ours alone, and an offset that is gone is never replaced in silence."""

UNLESS_SET: Mapping[str, object] = {
    "max_poll_records": 65_536,
    "fetch_max_wait_ms": 10,
    "max_partition_fetch_bytes": 4 * 1024 * 1024,
    "reconnect_backoff_max_ms": 1_000,
}
"""Better defaults for reading offsets that are known to be there, by a task that others wait for.

Answers of 4 MB instead of 1 MB took a third off the CPU time of reading (records of 100 bytes, no codec).

kafka-python asks ahead for what follows a range, and while such a question waits at the end of the
log no other partition of that broker is fetched: so it must not wait long.
"""

_idle: OrderedDict[bytes, tuple[KafkaConsumer, float]] = OrderedDict()  # with the time it was given back


MOST_UNFILTERED = 100 * 1024 * 1024
"""Bytes that a task may hold of what it has fetched, unless it is told otherwise."""


def answer_bytes(most_unfiltered: int) -> int:
    """How large an answer, or what is decoded of it at a time, may be.

    A task holds the answer in work, the next one, which kafka-python asks for ahead, and copies of parts of both.
    """
    return most_unfiltered // 4


LEAST_RECORD_BYTES = 16 * 1024 * 1024
"""Of a record that was compressed, however little a task may hold unfiltered."""


def record_bytes(most_unfiltered: int) -> int:
    """How large a record may be that was compressed: it is decoded as a whole."""
    return max(most_unfiltered, LEAST_RECORD_BYTES)


@contextmanager
def borrowed(
    kafka: Mapping[str, object], partitions: Iterable[TopicPartition], most_unfiltered: int = MOST_UNFILTERED
) -> Iterator[KafkaConsumer]:
    """A consumer with these settings, nobody else's while it is borrowed; after an error it is closed.

    It is assigned to `partitions`, so that their leaders are learned in one request (for one topic
    after another each would take kafka-python 100 ms); it has no position in them yet.
    """
    key = pickle.dumps((sorted(kafka.items()), most_unfiltered))  # not repr, which hides what differs: passwords
    consumer = _fresh(key) or _opened(kafka, most_unfiltered)
    try:
        consumer.assign([KafkaTopicPartition(*tp) for tp in partitions])
        yield consumer
    except Exception:
        consumer.close()
        raise
    except GeneratorExit:  # the task ended early, as under a LIMIT; the consumer is sound
        _keep(key, consumer)
        raise
    _keep(key, consumer)


def close_idle() -> None:
    """Close every consumer that is not borrowed."""
    while _idle:
        _idle.popitem()[1][0].close()


atexit.register(close_idle)


def _fresh(key: bytes) -> KafkaConsumer | None:
    """The idle consumer of these settings, if its connections can be trusted still."""
    consumer, since = _idle.pop(key, (None, 0.0))
    if consumer is not None and monotonic() - since > IDLE_S:
        consumer.close()
        return None
    return consumer


def _keep(key: bytes, consumer: KafkaConsumer) -> None:
    displaced = _idle.pop(key, None)
    _idle[key] = consumer, monotonic()
    if displaced is None and len(_idle) > MOST_IDLE:
        _, displaced = _idle.popitem(last=False)
    if displaced is not None:
        displaced[0].close()


def _opened(kafka: Mapping[str, object], most_unfiltered: int) -> KafkaConsumer:
    arguments = {**UNLESS_SET, **client_arguments(kafka), **OURS}
    for name in ("max_partition_fetch_bytes", "fetch_max_bytes"):
        wanted = arguments.get(name, KafkaConsumer.DEFAULT_CONFIG[name])
        arguments[name] = min(int(str(wanted)), answer_bytes(most_unfiltered))
    consumer, _ = open_client(KafkaConsumer, arguments)
    empty_markers.install(consumer)
    raw_batches.install(consumer)
    large_reads.install(consumer)
    return consumer
