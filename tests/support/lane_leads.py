"""Lanes and records for the tests of `maxLaneLead`: one record a minute in each of two partitions."""

from collections.abc import Mapping

from coordinator.plan.planning import OwnedRange, OwnedRanges
from coordinator.values.key_hash import cuts
from coordinator.values.subscription import TopicPartition
from kafka_logs import T0
from topics import Kafka, Record

MINUTE = 60_000
FIRST_MS = T0 - 3_600_000


def lanes(*positions: int) -> tuple[OwnedRange, ...]:
    """Lanes of equal size at these positions."""
    return tuple(OwnedRange(h, p, "e.1") for h, p in zip(cuts(len(positions)), positions, strict=True))


def reads(work: OwnedRanges, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, list[int]]:
    """The end of each lane; its position if it waits."""
    return {tp: [max(p.position, p.reach(ends[tp])) for p in parts] for tp, parts in work.items()}


def minutes(kafka: Kafka) -> tuple[TopicPartition, TopicPartition]:
    """Two new partitions with ten records each."""
    topic = kafka.create_topic("minutes", partitions=2)
    records = [Record(b"v", b"k", p, timestamp_ms=FIRST_MS + i * MINUTE) for p in (0, 1) for i in range(10)]
    kafka.produce(topic, records)
    return TopicPartition(topic, 0), TopicPartition(topic, 1)
