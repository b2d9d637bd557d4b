"""Batches of which a few bytes stand for many: read in pieces, or refused or skipped by name, through Kafka itself."""

import logging
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import pytest
from kafka import KafkaProducer
from kafka import TopicPartition as KafkaTopicPartition

from coordinator.errors import BatchTooLargeError
from coordinator.values.subscription import TopicPartition
from log_fixtures import offsets, task, whole
from spark_coop_source.fetch import consumers, fetch
from spark_coop_source.task.read import read_slices
from topics import Kafka, Record

MIB = 1024 * 1024
SMALL = 3
"""Records before a large batch, and behind it."""


pytestmark = pytest.mark.usefixtures("closed_clients")


def produced_together(kafka: Kafka, topic: str, sizes: Sequence[int], codec: str) -> None:
    """One batch with a record of zeros for each of `sizes`."""
    settings = {"batch_size": 256 * MIB, "linger_ms": 60_000, "max_request_size": 256 * MIB}
    with closing(KafkaProducer(bootstrap_servers=kafka.bootstrap, compression_type=codec, **settings)) as producer:
        for size in sizes:
            producer.send(topic, bytes(size))
        producer.flush()


def log_with(kafka: Kafka, sizes: Sequence[int], codec: str) -> str:
    """Small records, a batch of large ones, small records."""
    topic = kafka.create_topic("large")
    kafka.produce(topic, [Record(b"small")] * SMALL)
    produced_together(kafka, topic, sizes, codec)
    kafka.produce(topic, [Record(b"small")] * SMALL)
    return topic


def batches_of(kafka: Kafka, topic: str) -> int:
    """The number of batches in the log."""
    at = KafkaTopicPartition(topic, 0)
    with consumers.borrowed({"bootstrap_servers": [kafka.bootstrap]}, [TopicPartition(*at)]) as consumer:
        consumer.seek(at, 0)
        return len(consumer.poll(20_000)[at])


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_batch_larger_than_a_chunk_is_read_piece_by_piece(kafka: Kafka, codec: str) -> None:
    topic = log_with(kafka, [700_000] * 20, codec)
    until = 2 * SMALL + 20
    assert batches_of(kafka, topic) == 3
    batches = list(read_slices(task(kafka, [whole(topic, 0, until)])))
    read = [row for batch in batches for row in batch.select(["offset", "value"]).to_pylist()]
    assert [row["offset"] for row in read] == list(range(until))
    assert [len(row["value"]) for row in read] == [5] * SMALL + [700_000] * 20 + [5] * SMALL
    assert max(batch.nbytes for batch in batches) < 8 * MIB


def test_offsets_within_a_large_batch_are_read_and_no_others(kafka: Kafka) -> None:
    topic = log_with(kafka, [700_000] * 20, "lz4")
    assert offsets(task(kafka, [whole(topic, 9, 17)])) == list(range(9, 17))


def test_a_batch_beyond_the_bound_is_refused_by_name(kafka: Kafka) -> None:
    topic = log_with(kafka, [700_000] * 20, "zstd")
    bounded = replace(task(kafka, [whole(topic, 0, 26)]), most_uncompressed=10 * MIB)
    with pytest.raises(BatchTooLargeError) as refused:
        offsets(bounded)
    assert refused.value.what.startswith(f"{topic}-0: offsets 3-22: a record batch of ")
    assert refused.value.what.endswith("that holds more than 10485760")
    assert refused.value.remedy.startswith("raise maxBatchUncompressedBytes, or set failOnDataLoss=false")


@pytest.mark.parametrize(
    ("start", "until", "skipped", "count"),
    [
        pytest.param(0, 26, "3-22", 20, id="all of it"),
        pytest.param(7, 26, "7-22", 16, id="from within it"),
        pytest.param(0, 9, "3-8", 6, id="to within it"),
    ],
)
def test_a_batch_beyond_the_bound_is_skipped_and_counted(
    kafka: Kafka, caplog: pytest.LogCaptureFixture, start: int, until: int, skipped: str, count: int
) -> None:
    topic = log_with(kafka, [700_000] * 20, "zstd")
    bounded = replace(task(kafka, [whole(topic, start, until)], fail_on_data_loss=False), most_uncompressed=10 * MIB)
    with caplog.at_level(logging.WARNING, fetch.__name__):
        read = offsets(bounded)
    assert read == [offset for offset in range(start, until) if not SMALL <= offset < SMALL + 20]
    (warning,) = (message for message in caplog.messages if message.startswith(BatchTooLargeError.name))
    assert warning.startswith(f"BATCH_TOO_LARGE: {topic}-0: offsets {skipped}: a record batch of ")
    assert warning.endswith(f"; skipped {count} offsets, because failOnDataLoss=false")


LARGE_RECORD = [100, 17 * MIB, 200]


def test_a_record_too_large_to_be_held_is_refused_by_name(kafka: Kafka) -> None:
    topic = log_with(kafka, LARGE_RECORD, "gzip")
    little = replace(task(kafka, [whole(topic, 0, 9)]), most_unfiltered=4 * MIB)
    with pytest.raises(BatchTooLargeError) as refused:
        offsets(little)
    assert refused.value.what.startswith(f"{topic}-0: offsets 4-4: a record of 178258")
    assert refused.value.remedy.startswith("raise fetchMemory")
    assert offsets(replace(little, most_unfiltered=32 * MIB)) == list(range(9))


def test_a_record_too_large_to_be_held_is_skipped_and_the_rest_of_its_batch_is_read(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = log_with(kafka, LARGE_RECORD, "gzip")
    little = replace(task(kafka, [whole(topic, 0, 9)], fail_on_data_loss=False), most_unfiltered=4 * MIB)
    with caplog.at_level(logging.WARNING, fetch.__name__):
        assert offsets(little) == [0, 1, 2, 3, 5, 6, 7, 8]
    (warning,) = (message for message in caplog.messages if message.startswith(BatchTooLargeError.name))
    assert "offsets 4-4: a record of 178258" in warning
    assert warning.endswith("; skipped 1 offsets, because failOnDataLoss=false")


def test_an_uncompressed_record_of_any_size_is_read(kafka: Kafka) -> None:
    topic = kafka.create_topic("large", config={"max.message.bytes": str(20 * MIB)})
    with closing(KafkaProducer(bootstrap_servers=kafka.bootstrap, max_request_size=64 * MIB)) as producer:
        producer.send(topic, bytes(17 * MIB)).get(timeout=30)
    bounded = replace(task(kafka, [whole(topic, 0, 1)]), most_unfiltered=MIB, most_uncompressed=65_536)
    assert offsets(bounded) == [0]
