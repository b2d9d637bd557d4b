"""The times of the records at some offsets. The driver reads records nowhere else.

Knows how a consumer reads one record of many partitions; nothing of the use of the times.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition

from coordinator.kafka.reader import POLL_MS, reader
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition

WAIT_S = 8.0
"""Longest wait for the records, which the log is known to have. A leader that sends none has fallen silent since."""


def first_times(
    kafka: Mapping[str, object], stretches: Mapping[TopicPartition, OffsetRange]
) -> dict[TopicPartition, int | None]:
    """The time, in milliseconds, of the first remaining record in each stretch of offsets.

    None for a stretch without a record (markers only), and for a record without a time. Stretches whose leader does not
    answer within `WAIT_S` are left out. A deleted record has no time; the next one serves as well. Raises
    kafka-python's errors.
    """
    with closing(reader(kafka, stretches, max_partition_fetch_bytes=64 * 1024)) as consumer:
        return dict(_first_times(consumer, stretches))


def _first_times(
    consumer: KafkaConsumer, stretches: Mapping[TopicPartition, OffsetRange]
) -> Iterator[tuple[TopicPartition, int | None]]:
    waiting = {KafkaTopicPartition(*tp): stretch for tp, stretch in stretches.items()}
    end = time.monotonic() + WAIT_S
    while waiting and time.monotonic() < end:
        for partition, records in consumer.poll(POLL_MS).items():
            consumer.pause(partition)
            if (wanted := waiting.pop(partition, None)) is not None:
                has_time = records[0].offset < wanted.until and records[0].timestamp >= 0
                yield TopicPartition(*partition), records[0].timestamp if has_time else None
        for partition in [p for p, stretch in waiting.items() if consumer.position(p) >= stretch.until]:
            del waiting[partition]
            yield TopicPartition(*partition), None
