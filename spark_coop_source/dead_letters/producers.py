"""Kafka producers of one Python worker, kept open from task to task, with the settings of the query's consumers."""

from collections.abc import Mapping

from coordinator.kafka.producer import RecordProducer
from spark_coop_source.fetch.idle_clients import IdleClients, key_of

MOST_IDLE = 4
"""Most idle producers: one for each set of client settings, so rarely more than one."""

_idle: IdleClients[RecordProducer] = IdleClients(MOST_IDLE)


def take(kafka: Mapping[str, object], topic: str) -> RecordProducer:
    """A producer for the topic with these settings, for the caller alone. Raises as `RecordProducer` does."""
    return _idle.take(key_of(kafka, topic)) or RecordProducer(kafka, [topic])


def give_back(kafka: Mapping[str, object], topic: str, producer: RecordProducer) -> None:
    """Keep a producer, all of whose records are in Kafka, for the next task."""
    _idle.keep(key_of(kafka, topic), producer)


def close_idle() -> None:
    """Close every producer that no task has."""
    _idle.close()
