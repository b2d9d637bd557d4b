"""Requests for the missing offsets: about as many bytes as they need, and none behind them."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition

from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.decode.record_batch_v2 import RawBatch
from spark_coop_source.fetch import consumers, raw_batches
from spark_coop_source.fetch.fetch import FetchSettings, fetch
from spark_coop_source.fetch.needed import LEAST_BYTES, MARGIN, BatchSizes, limit
from spark_coop_source.fetch.raw_batches import HEAD
from spark_coop_source.fetch.several import begun
from topics import Kafka, Record

BATCHES, EACH, RECORD = 160, 10, 2_000
BATCH = EACH * (RECORD + 12)
"""About the bytes of a record batch; the record is noise, so no codec makes it smaller."""


@pytest.fixture(scope="module")
def log(kafka: Kafka) -> TopicPartition:
    """A partition of 3 MB in batches of ten records."""
    topic = kafka.create_topic("needed")
    value = random.Random(5).randbytes(RECORD)
    for _ in range(BATCHES):
        kafka.produce(topic, [Record(value)] * EACH)
    return TopicPartition(topic, 0)


@contextmanager
def counted(kafka: Kafka, *partitions: TopicPartition, **client: object) -> Iterator[tuple[KafkaConsumer, list[int]]]:
    """A new consumer, and the bytes of each of Kafka's answers to it that has some."""
    consumers.close_idle()
    answers: list[int] = []
    with consumers.borrowed({"bootstrap_servers": kafka.bootstrap, **client}, partitions) as consumer:
        fetcher: Any = consumer._fetcher
        handle = fetcher._handle_fetch_response

        def handled(*args: Any) -> None:
            of_all = [p for topic in args[-1].responses for p in topic.partitions]
            answers.extend(size for p in of_all if (size := len(p.records or b"")))
            handle(*args)

        fetcher._handle_fetch_response = handled
        yield consumer, answers
    consumers.close_idle()


def read(kafka: Kafka, consumer: KafkaConsumer, log: TopicPartition, start: int, until: int) -> list[int]:
    """The offsets that `fetch` returns."""
    settings = FetchSettings({"bootstrap_servers": kafka.bootstrap}, 20_000, True)
    chunks = fetch(consumer, log, OffsetRange(start, until), settings)
    found = [int(offset) for chunk in chunks for offset in chunk.offsets]
    fetcher: Any = consumer._fetcher
    assert not fetcher.in_flight_fetches(), "a request for offsets behind the stretch"
    return found


@pytest.mark.parametrize("most", [4 * 1024 * 1024, 256 * 1024], ids=["one large answer", "several answers"])
def test_a_stretch_within_the_log_costs_its_bytes_and_hardly_more(kafka: Kafka, log: TopicPartition, most: int) -> None:
    with counted(kafka, log, max_partition_fetch_bytes=most) as (consumer, answers):
        for start in (0, 500):
            answers.clear()
            assert read(kafka, consumer, log, start, start + 495) == [*range(start, start + 495)]
            cut = BATCH / 2 * (len(answers) - 1)  # of each answer but the last, part of a batch comes again
            assert 495 * RECORD <= sum(answers) <= 1.01 * 50 * BATCH + MARGIN * BATCH + LEAST_BYTES + 2 * cut
            assert len(answers) <= 2 + 1_000_000 // most


def test_the_sizes_of_one_stretch_are_known_for_the_next_one(kafka: Kafka, log: TopicPartition) -> None:
    with counted(kafka, log) as (consumer, answers):
        read(kafka, consumer, log, 0, 500)
        first = len(answers)
        read(kafka, consumer, log, 500, 1_000)
    assert (first, len(answers)) == (2, 3)


def test_short_stretches_of_several_partitions_cost_their_bytes(kafka: Kafka) -> None:
    topic = kafka.create_topic(partitions=3)
    for _ in range(20):
        kafka.produce(topic, [Record(bytes(RECORD), None, i % 3) for i in range(3 * EACH)])
    stretches = {TopicPartition(topic, i): OffsetRange(0, 100) for i in range(3)}
    with counted(kafka, *stretches) as (consumer, answers):
        found = begun(consumer, stretches, 10_000_000)
    assert all(each.position >= 100 for each in found.values())
    assert sum(answers) <= 3 * (10 + 2) * BATCH < 3 * 20 * BATCH * 0.7


def test_after_an_answer_without_records_the_request_is_as_large_as_it_may_be(
    kafka: Kafka, log: TopicPartition
) -> None:
    """Aborted transactions can be long, and show no sizes."""
    at = KafkaTopicPartition(*log)
    with counted(kafka, log) as (consumer, _):
        consumer.seek(at, 0)
        wanted, config = limit(consumer, {at: 1_000}), consumer._fetcher.config
        assert wanted.partitions() == [at]
        assert config["max_partition_fetch_bytes"] == LEAST_BYTES
        wanted.saw(at, [])
        assert wanted.partitions() == [at]
        assert config["max_partition_fetch_bytes"] == consumer.config["max_partition_fetch_bytes"]
        consumer.seek(at, 1_000)
        assert wanted.partitions() == []


def test_record_by_record_a_stretch_costs_hardly_more(
    kafka: Kafka, log: TopicPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_batches, "install", lambda _: False)
    with counted(kafka, log) as (consumer, answers):
        assert read(kafka, consumer, log, 0, 500) == [*range(500)]
    assert sum(answers) <= 1.1 * 50 * BATCH + 2 * LEAST_BYTES


def a_batch(base: int, offsets: int, size: int) -> Any:
    raw = RawBatch(base, base + offsets - 1, offsets, 0, 0, None, memoryview(bytes(size - HEAD.size)))
    return raw_batches._Record(raw, raw.last_offset, size)


@given(st.integers(1, 50), st.integers(1, 1_000), st.integers(200, 20_000), st.integers(1, 100_000))
def test_batches_of_one_size_are_requested_as_many_as_hold_the_offsets(
    seen: int, offsets: int, size: int, missing: int
) -> None:
    sizes = BatchSizes().after([a_batch(i * offsets, offsets, size) for i in range(seen)])
    whole = -(-missing // offsets) * size
    assert max(LEAST_BYTES, whole) <= sizes.bytes_for(missing) <= max(LEAST_BYTES, whole + MARGIN * size + 1)


def test_later_answers_count_more() -> None:
    small, large = [a_batch(0, 10, 1_000)], [a_batch(0, 10, 100_000)]
    assert BatchSizes().after(large).after(small).bytes_for(1_000) < BatchSizes().after(small).after(large).bytes_for(
        1_000
    )
