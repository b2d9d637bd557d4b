"""Fetches the beginnings of several short stretches with as few requests as possible.

A stretch that is read alone costs a request, however small. Here one round requests all stretches together, and leaves
out those that are complete.

    orders-0  |==========|
    orders-1  |==========|        the part of each in one answer
    orders-2  |=====  ....        `fetch` goes on here, and raises any error again

Runs in executor workers. Knows Kafka and offsets; nothing of the content of a record, and of no error.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.consumer.fetcher import ConsumerRecord

from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.fetch.needed import limit

log = logging.getLogger(__name__)

SHORT = 10_000
"""Most offsets. Of a longer stretch that is read alone, the next answer comes while this one is decoded."""

POLL_MS = 20
"""Time of one poll, between two looks at positions: kafka-python's poll waits on after markers only."""

FIRST_POLL = 100
"""Records of a poll while their size is unknown, where kafka-python returns record by record."""

MOST_AT_ONCE = 64
"""Most stretches, however small their answers: kafka-python visits each of them again and again."""

RECORD_BYTES = 1_000
"""About the memory of a record, or of a batch, besides its key and value."""

PATIENCE_S = 0.5
"""After this time without progress, each stretch goes on alone, and `fetch` looks for the reason."""


@dataclass(slots=True)
class Begun:
    """The fetched beginning of one stretch: records as `poll` returns them, and the next offset to read."""

    position: int
    records: list[ConsumerRecord] = field(default_factory=list)


def at_once(partition_bytes: int, most_bytes: int) -> int:
    """The number of stretches to begin together, if one round of answers may hold `most_bytes`."""
    return max(1, min(MOST_AT_ONCE, most_bytes // max(1, partition_bytes)))


def begun(
    consumer: KafkaConsumer, stretches: Mapping[TopicPartition, OffsetRange], most_bytes: int
) -> dict[TopicPartition, Begun]:
    """The beginning of each of `stretches`, or all of it. Empty if Kafka refuses one, or its log was cut meanwhile.

    Requests no more once it holds `most_bytes`. Leaves the consumer assigned to these partitions. Raises nothing:
    `fetch` raises the error again when it reads that partition alone.
    """
    beginnings = {tp: Begun(stretch.start) for tp, stretch in stretches.items()}
    try:
        _ask(consumer, stretches, beginnings, most_bytes)
    except Exception as error:  # noqa: BLE001  `fetch` meets any error again
        log.debug("each of %s is read alone: %r", [str(tp) for tp in stretches], error)
        return {}
    return beginnings


def _ask(
    consumer: KafkaConsumer,
    stretches: Mapping[TopicPartition, OffsetRange],
    beginnings: Mapping[TopicPartition, Begun],
    most_bytes: int,
) -> None:
    missing = {KafkaTopicPartition(*tp): tp for tp in stretches}
    consumer.assign(list(missing))
    for at, tp in missing.items():
        consumer.seek(at, beginnings[tp].position)
    needed = limit(consumer, {at: stretches[tp].until for at, tp in missing.items()})
    held, last_progress = 0, monotonic()
    while missing and held < most_bytes and monotonic() - last_progress < PATIENCE_S:
        polled = consumer.poll(POLL_MS, FIRST_POLL)
        for at, tp in missing.items():
            position, records = consumer.position(at), polled.get(at, [])
            if position > beginnings[tp].position:
                last_progress = monotonic()
                needed.saw(at, records)
                beginnings[tp].position = position
                beginnings[tp].records += records
                held += sum(map(_bytes_of, records))
        missing = {at: tp for at, tp in missing.items() if beginnings[tp].position < stretches[tp].until}
        if missing:
            consumer.assign(list(missing))


def _bytes_of(record: ConsumerRecord) -> int:
    return RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
