"""The beginnings of several short stretches, by as few requests as may be.

One after another each takes a request, and waits for the one before it that kafka-python asked ahead for what follows:
14 ms a partition, however little is in it. Here all are asked for at once, and who is through is not asked for again.

    orders-0  |==========|
    orders-1  |==========|        what one answer holds of them
    orders-2  |=====  ....        `fetch` goes on here, and meets again what went wrong meanwhile

Runs in executor workers. Knows Kafka and offsets; nothing of what is in a record, and of no error.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.consumer.fetcher import ConsumerRecord

from coordinator.ranges import OffsetRange
from coordinator.subscription import TopicPartition

log = logging.getLogger(__name__)

SHORT = 10_000
"""Offsets. Of a longer stretch the next answer comes while this one is decoded, if it is read alone."""

POLL_MS = 20
"""One poll, between two looks at positions: kafka-python's goes on waiting when it has passed markers only."""

FIRST_POLL = 100
"""Records of a poll while it is not known how large they are, where kafka-python gives record by record."""

MOST_AT_ONCE = 64
"""Stretches, however small their answers: kafka-python looks at each of them again and again."""

RECORD_BYTES = 1_000
"""About what a record takes in memory besides its key and value, where they come record by record; a batch, too."""

PATIENCE_S = 0.5
"""Without progress for so long, each stretch goes on alone, which finds out why."""


@dataclass(slots=True)
class Begun:
    """What has come of one stretch: records as `poll` gives them, and the next offset to read."""

    position: int
    records: list[ConsumerRecord] = field(default_factory=list)


def at_once(consumer: KafkaConsumer, most_bytes: int) -> int:
    """How many stretches may be begun together, if one round of answers may hold `most_bytes`."""
    fits = most_bytes // max(1, int(consumer.config["max_partition_fetch_bytes"]))
    return max(1, min(MOST_AT_ONCE, fits))


def begun(
    consumer: KafkaConsumer, stretches: Mapping[TopicPartition, OffsetRange], most_bytes: int
) -> dict[TopicPartition, Begun]:
    """The beginning of each of `stretches`, or all of it; of none if Kafka refuses one, or its log was cut meanwhile.

    Asks no more when `most_bytes` are held. Leaves the consumer assigned to these partitions; raises nothing: whoever
    reads one of them alone is told.
    """
    found = {tp: Begun(stretch.start) for tp, stretch in stretches.items()}
    try:
        _ask(consumer, stretches, found, most_bytes)
    except Exception as error:  # noqa: BLE001  whatever it is, it is met again
        log.debug("each of %s is read alone: %r", [str(tp) for tp in stretches], error)
        return {}
    return found


def _ask(
    consumer: KafkaConsumer,
    stretches: Mapping[TopicPartition, OffsetRange],
    found: Mapping[TopicPartition, Begun],
    most_bytes: int,
) -> None:
    missing = {KafkaTopicPartition(*tp): tp for tp in stretches}
    consumer.assign(list(missing))
    for at, tp in missing.items():
        consumer.seek(at, found[tp].position)
    held, last_progress = 0, monotonic()
    while missing and held < most_bytes and monotonic() - last_progress < PATIENCE_S:
        polled = consumer.poll(POLL_MS, FIRST_POLL)
        for at, tp in missing.items():
            position = consumer.position(at)
            if position > found[tp].position:
                last_progress = monotonic()
                found[tp].position = position
                found[tp].records += polled.get(at, [])
                held += sum(map(_bytes_of, polled.get(at, [])))
        missing = {at: tp for at, tp in missing.items() if found[tp].position < stretches[tp].until}
        if missing:
            consumer.assign(list(missing))


def _bytes_of(record: ConsumerRecord) -> int:
    return RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
