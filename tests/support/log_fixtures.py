"""Logs with everything odd in them, and the plainest way to read one: the oracle of the read path's tests."""

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import cache
from itertools import count

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.consumer.fetcher import ConsumerRecord

from coordinator.errors import DataLossError
from coordinator.progress.slices import Slice
from coordinator.values.key_hash import hash_record
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition
from log_lines import own_lines
from spark_coop_source.arrow_output.schema import EVERY, PLAIN
from spark_coop_source.task.partition import SlicePartition
from spark_coop_source.task.read import read_slices
from topics import Kafka, Record

PATIENCE_S = 30.0
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "50",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "50",
    "delete.retention.ms": "0",
}


def whole(topic: str, start: int, until: int, partition: int = 0) -> Slice:
    """All hashes of some offsets."""
    return lane(topic, WHOLE, start, until, partition)


def lane(topic: str, hashes: HashRange, start: int, until: int, partition: int = 0) -> Slice:
    """Some hashes of some offsets."""
    return Slice(TopicPartition(topic, partition), hashes, OffsetRange(start, until))


def task(
    kafka: Kafka,
    slices: Iterable[Slice],
    *,
    include_headers: bool = False,
    poll_timeout_ms: int = 20_000,
    fail_on_data_loss: bool = True,
    **settings: object,
) -> SlicePartition:
    """An input partition; `settings` are kafka-python's."""
    client = {"bootstrap_servers": kafka.bootstrap, **settings}
    return SlicePartition(
        tuple(slices), client, EVERY if include_headers else PLAIN, fail_on_data_loss, poll_timeout_ms=poll_timeout_ms
    )


def rows(partition: SlicePartition) -> list[dict[str, object]]:
    """The rows that a task reads."""
    return [row for batch in read_slices(partition) for row in batch.to_pylist()]


def offsets(partition: SlicePartition) -> list[int]:
    """The offsets that a task reads, in the order of reading."""
    return [offset for batch in read_slices(partition) for offset in batch.column("offset").to_pylist()]


def everything(kafka: Kafka, topic: str, isolation_level: str = "read_uncommitted") -> list[ConsumerRecord]:
    """All records of partition 0, by kafka-python's own iterator until nothing more comes: slow and sure."""
    settings = {"group_id": None, "enable_auto_commit": False, "auto_offset_reset": "none"}
    with closing(
        KafkaConsumer(
            bootstrap_servers=kafka.bootstrap, isolation_level=isolation_level, consumer_timeout_ms=500, **settings
        )
    ) as consumer:
        at = KafkaTopicPartition(topic, 0)
        consumer.assign([at])
        consumer.seek(at, consumer.beginning_offsets([at])[at])
        return list(consumer)


def end(kafka: Kafka, topic: str) -> int:
    """The offset after the last of partition 0, markers included."""
    with closing(KafkaConsumer(bootstrap_servers=kafka.bootstrap)) as consumer:
        at = KafkaTopicPartition(topic, 0)
        return int(consumer.end_offsets([at])[at])


def inside(record: ConsumerRecord, slices: Iterable[Slice]) -> bool:
    """Whether the record's point lies in one of `slices`, by the definition."""
    key_hash = hash_record(record.key, record.offset)
    return any(s.offsets.start <= record.offset < s.offsets.until and key_hash in s.hashes for s in slices)


@cache
def odd_log(kafka: Kafka, compression: str | None = None) -> str:
    """A topic whose partition has one of everything: keys, values, headers, transactions, a large record. Read only.

    Every codec is there; all else is compressed with `compression`
    (values are long, for a producer sends what does not become smaller as it is).
    """
    topic = kafka.create_topic("odd", config={"max.message.bytes": "5000000"})
    keys = (b"a", b"b", b"", None, b"\x00\xff", "Zürich".encode())
    kafka.produce(
        topic,
        [Record(b"%d " % i * 50, key) for i, key in zip(range(24), keys * 4, strict=True)],
        compression=compression,
    )
    kafka.produce(topic, [Record(None, b"a"), Record(b"", b"b")], compression=compression)
    headers = (("trace", b"1"), ("trace", b"2"), ("empty", b""), ("Zürich", b"long" * 50))
    kafka.produce(topic, [Record(b"v" * n, b"a", headers=headers[:n]) for n in (4, 0, 1, 2)], compression=compression)
    kafka.produce_committed(
        topic, [Record(b"committed %d" % i * 50, b"%d" % i) for i in range(5)], compression=compression
    )
    kafka.produce_aborted(topic, [Record(b"aborted %d" % i * 50, b"%d" % i) for i in range(5)], compression=compression)
    produce_large(kafka, topic, b"large", 2_000_000)
    for each in ("gzip", "snappy", "lz4", "zstd"):
        kafka.produce(topic, [Record(b"%d " % i * 50, b"%d" % (i % 5)) for i in range(12)], compression=each)
    kafka.produce_aborted(topic, [Record(b"aborted at the end", b"a")], compression=compression)
    return topic


def produce_large(kafka: Kafka, topic: str, key: bytes, size: int) -> None:
    """Write one record larger than kafka-python's default limit."""
    with closing(KafkaProducer(bootstrap_servers=kafka.bootstrap, max_request_size=2 * size)) as producer:
        producer.send(topic, key=key, value=b"x" * size).get(timeout=PATIENCE_S)


@cache
def compacted_log(kafka: Kafka) -> str:
    """A topic that Kafka's cleaner has been over: most offsets hold no record. Read only.

    Each seventh record has a key of its own, and stays. So between the offsets 7, 14, 21 ... are gaps.
    """
    topic = kafka.create_topic("compacted", config=COMPACTED)
    written = count()

    def rewritten() -> bool:
        numbers = [next(written) for _ in range(21)]
        keys = [b"only %d" % n if n and n % 7 == 0 else b"%d" % (n % 7 or 1) for n in numbers]
        kafka.produce(topic, [Record(b"%d" % n, key) for n, key in zip(numbers, keys, strict=True)])
        return len(everything(kafka, topic)) < end(kafka, topic) - 21

    eventually(rewritten)
    return topic


@cache
def emptied_marker_log(kafka: Kafka) -> str:
    """A topic in which the cleaner has left the batch of an aborted transaction's marker without the marker.

    It keeps the last batch of a producer: where the next life of the producer ended the transaction, the marker's.
    """
    topic = kafka.create_topic("emptied", config=COMPACTED)
    kafka.produce_fenced(topic, [Record(b"aborted", b"k")])

    def emptied() -> bool:
        kafka.produce(topic, [Record(b"v", b"k")])
        try:
            everything(kafka, topic, "read_committed")
        except RuntimeError:  # "StopIteration raised unpacking messageset"
            return True
        return False

    eventually(emptied)
    return topic


def losses(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The log lines about lost records."""
    return [message for message in own_lines(caplog) if message.startswith(DataLossError.name)]


def eventually(condition: Callable[[], object]) -> None:
    """Ask again until `condition` holds; fails after a while."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"{condition} did not come true in {PATIENCE_S:g} s"
        time.sleep(0.05)
