"""Reads stretches of a log whole, record by record, for operators. A query reads in `spark_coop_source/fetch/`.

Knows nothing of the use of the records.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, TypeAlias

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError

from coordinator.kafka.connection import servers_of
from coordinator.kafka.errors import explained
from coordinator.kafka.reader import POLL_MS, reader
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import Bounds, TopicPartition

WAIT_S = 30.0
"""Longest wait for the next records, which the log is known to have."""

ConsumerRecord: TypeAlias = Any
"""kafka-python's, which has no types."""


def stretches_of(
    bounds: Mapping[TopicPartition, Bounds], starts: Mapping[TopicPartition, int] | None = None
) -> dict[TopicPartition, OffsetRange]:
    """From each start, or the beginning of the log, to its end; without partitions that end before that."""
    first = {tp: max((starts or {}).get(tp, 0), b.beginning) for tp, b in bounds.items()}
    return {tp: OffsetRange(start, bounds[tp].end) for tp, start in first.items() if start < bounds[tp].end}


def records(kafka: Mapping[str, object], stretches: Mapping[TopicPartition, OffsetRange]) -> Iterator[ConsumerRecord]:
    """The records of the stretches, in offset order within a partition. Raises `LogError`s."""
    if not stretches:
        return
    try:
        with closing(reader(kafka, stretches, max_poll_records=5_000)) as consumer:
            yield from _polled(consumer, {KafkaTopicPartition(*tp): stretch for tp, stretch in stretches.items()})
    except (KafkaError, OSError) as error:
        raise explained(error, f"the records of {len(stretches)} partitions", servers_of(kafka)) from None


def _polled(consumer: KafkaConsumer, wanted: Mapping[KafkaTopicPartition, OffsetRange]) -> Iterator[ConsumerRecord]:
    waiting, end = set(wanted), time.monotonic() + WAIT_S
    while waiting:
        for partition, found in consumer.poll(POLL_MS).items():
            end = time.monotonic() + WAIT_S
            yield from (record for record in found if record.offset < wanted[partition].until)
        for partition in [p for p in waiting if consumer.position(p) >= wanted[p].until]:
            consumer.pause(partition)
            waiting.remove(partition)
        if time.monotonic() > end:
            raise KafkaTimeoutError(f"no record of {len(waiting)} partitions within {WAIT_S:g} s")
