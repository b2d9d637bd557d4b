"""Topics with millions of records, written in seconds by librdkafka.

Knows Kafka's producer; nothing of Spark, of lanes or of the cases.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice

from confluent_kafka import KafkaError, Producer

_PATIENCE_S = 120
_SEED = 12
_VALUES = 4_096


@dataclass(frozen=True, slots=True)
class Load:
    """The content of a topic: `records` in all, keys spread evenly, values half of which compress."""

    records: int
    size: int = 100  # bytes of a value
    partitions: int = 1
    keys: int = 100_000
    codec: str = "lz4"
    batch_bytes: int = 65_536  # before compression


def produce(bootstrap: str, topic: str, load: Load) -> None:
    """Write the records; all are acknowledged when this returns. Each partition gets the same number.

    Raises `RuntimeError` if the broker did not accept them all.
    """
    refused: list[KafkaError] = []
    producer = Producer(_settings(bootstrap, load) | {"on_delivery": lambda error, _: refused.append(error)})
    for number, (key, value) in enumerate(_records(load)):
        _send(producer, topic, key, value, number % load.partitions)
    if producer.flush(_PATIENCE_S):
        raise RuntimeError(f"the broker did not take all of {load.records:,} records within {_PATIENCE_S} s")
    if refused:
        raise RuntimeError(f"the broker did not take {len(refused):,} of {load.records:,} records: {refused[0]}")


def _settings(bootstrap: str, load: Load) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap,
        "compression.type": load.codec,
        "batch.size": max(load.batch_bytes, load.size + 1_000),
        "message.max.bytes": max(1_000_000, 2 * load.size),
        "linger.ms": 50,
        "delivery.report.only.error": True,
        "queue.buffering.max.messages": 1_000_000,
        "queue.buffering.max.kbytes": 1_000_000,
    }


def _send(producer: Producer, topic: str, key: bytes, value: bytes, partition: int) -> None:
    while True:
        try:
            producer.produce(topic, value, key, partition)
            return
        except BufferError:
            producer.poll(0.05)


def _records(load: Load) -> Iterator[tuple[bytes, bytes]]:
    """The same for the same load."""
    chance = random.Random(_SEED)  # noqa: S311  not for secrets
    half = -(-load.size // 2)
    count = max(1, min(_VALUES, load.records, 64_000_000 // load.size))
    values = [(chance.randbytes(half) + b"abcdefghij" * half)[: load.size] for _ in range(count)]
    keys = [b"key-%d" % chance.randrange(load.keys) for _ in range(min(load.records, 4 * load.keys))]
    return islice(zip(cycle(keys), cycle(values)), load.records)
