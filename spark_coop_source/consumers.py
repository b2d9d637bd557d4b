"""Kafka consumers of one Python worker, kept open from task to task.

Connecting costs more than a small batch, and Spark's workers outlive their tasks. Knows how a
consumer is opened for reading given offsets; nothing of which offsets.
"""

import atexit
import pickle
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition

from coordinator.kafka_client import client_arguments
from coordinator.kafka_connection import open_client
from coordinator.subscription import TopicPartition
from spark_coop_source import raw_batches

MOST_IDLE = 4
"""Consumers kept while no task uses them: one for each set of client settings, so rarely more than one."""

OURS: Mapping[str, object] = {
    "group_id": None,
    "enable_auto_commit": False,
    "auto_offset_reset": "none",
    "allow_auto_create_topics": False,
}
"""What the promises rest on: positions are ours alone, and an offset that is gone is never replaced in silence."""

UNLESS_SET: Mapping[str, object] = {
    "max_poll_records": 20_000,
    "fetch_max_wait_ms": 10,
    "reconnect_backoff_max_ms": 1_000,
}
"""Better defaults for reading offsets that are known to be there, by a task that others wait for.

kafka-python asks ahead for what follows a range, and while such a question waits at the end of the
log no other partition of that broker is fetched: so it must not wait long.
"""

_idle: OrderedDict[bytes, KafkaConsumer] = OrderedDict()


@contextmanager
def borrowed(kafka: Mapping[str, object], partitions: Iterable[TopicPartition]) -> Iterator[KafkaConsumer]:
    """A consumer with these settings, nobody else's while it is borrowed; after an error it is closed.

    It is assigned to `partitions`, so that their leaders are learned in one request (for one topic
    after another each would take kafka-python 100 ms); it has no position in them yet.
    """
    key = pickle.dumps(sorted(kafka.items()))  # not repr, which hides what differs: passwords
    consumer = _idle.pop(key, None) or _opened(kafka)
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
        _idle.popitem()[1].close()


atexit.register(close_idle)


def _keep(key: bytes, consumer: KafkaConsumer) -> None:
    displaced = _idle.pop(key, None)
    _idle[key] = consumer
    if displaced is None and len(_idle) > MOST_IDLE:
        _, displaced = _idle.popitem(last=False)
    if displaced is not None:
        displaced.close()


def _opened(kafka: Mapping[str, object]) -> KafkaConsumer:
    consumer, _ = open_client(KafkaConsumer, {**UNLESS_SET, **client_arguments(kafka), **OURS})
    raw_batches.install(consumer)
    return consumer
