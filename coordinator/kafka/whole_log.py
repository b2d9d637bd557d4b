"""Reads stretches of a log whole, record by record, for operators. A query reads in `spark_coop_source/fetch/`.

Opens a consumer for each call and closes it. Knows nothing of the use of the records.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, TypeAlias

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError

from coordinator.kafka import empty_markers
from coordinator.kafka.client import client_arguments
from coordinator.kafka.connection import ANSWER_BYTES_MAX, IN_TIME, open_client, servers_of
from coordinator.kafka.errors import explained
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import Bounds, TopicPartition

WAIT_S = 30.0
"""Longest wait for the next records, which the log is known to have."""

_POLL_MS = 500
_OURS: Mapping[str, object] = {
    "group_id": None,
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",  # retention may delete records meanwhile
    "allow_auto_create_topics": False,
    "max_poll_records": 5_000,
    "receive_message_max_bytes": ANSWER_BYTES_MAX,
}

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
    wanted = {KafkaTopicPartition(*tp): stretch for tp, stretch in stretches.items()}
    if not wanted:
        return
    what = f"the records of {len(wanted)} partitions"
    try:
        consumer, _ = open_client(
            KafkaConsumer, {**IN_TIME, **client_arguments(kafka), **_OURS}, {tp.topic for tp in wanted}
        )
        with closing(consumer):
            empty_markers.install(consumer)
            yield from _polled(consumer, wanted)
    except (KafkaError, OSError) as error:
        raise explained(error, what, servers_of(kafka)) from None


def _polled(consumer: KafkaConsumer, wanted: Mapping[KafkaTopicPartition, OffsetRange]) -> Iterator[ConsumerRecord]:
    consumer.assign(list(wanted))
    for partition, stretch in wanted.items():
        consumer.seek(partition, stretch.start)
    waiting, end = set(wanted), time.monotonic() + WAIT_S
    while waiting:
        for partition, found in consumer.poll(_POLL_MS).items():
            end = time.monotonic() + WAIT_S
            yield from (record for record in found if record.offset < wanted[partition].until)
        for partition in [p for p in waiting if consumer.position(p) >= wanted[p].until]:
            consumer.pause(partition)
            waiting.remove(partition)
        if time.monotonic() > end:
            raise KafkaTimeoutError(f"no record of {len(waiting)} partitions within {WAIT_S:g} s")
