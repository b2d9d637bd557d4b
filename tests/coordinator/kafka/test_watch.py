"""Fetches that wait for new records at the ends of logs, at a real broker."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from kafka.protocol.consumer import IsolationLevel

from coordinator.kafka import watch as watch_module
from coordinator.kafka.log import KafkaLog
from coordinator.kafka.watch import LogWatch
from coordinator.values.subscription import Bounds, TopicPartition, Topics
from kafka_logs import kafka_log
from topics import Kafka, Record

SOON_S = 20.0
"""Much longer than a fetch stays open, for a busy machine."""


@pytest.fixture
def log(kafka: Kafka) -> Iterator[KafkaLog]:
    with closing(kafka_log(kafka.bootstrap)) as log:
        yield log


@pytest.fixture
def watch(kafka: Kafka) -> Iterator[LogWatch]:
    with closing(LogWatch({"bootstrap_servers": kafka.bootstrap}, IsolationLevel.READ_UNCOMMITTED)) as watch:
        yield watch


def bounds_of(log: KafkaLog, topic: str) -> dict[TopicPartition, Bounds]:
    return log.bounds_now([TopicPartition(topic, n) for n in log.topics(Topics((topic,)))[topic].partitions])


def is_woken(log: KafkaLog, at: dict[TopicPartition, Bounds], woken: threading.Event) -> bool:
    """Whether a query that begins to wait again and again, as it does every 250 ms, is woken in time."""
    deadline = time.monotonic() + SOON_S
    while not woken.wait(0.05) and time.monotonic() < deadline:
        log.watch(at, woken.set)
    return woken.is_set()


def ends_soon(watch: LogWatch, tp: TopicPartition) -> bool:
    """Whether the fetch at the end of a log is answered in time."""
    deadline = time.monotonic() + SOON_S
    while (is_open := watch.bounds([tp]) is not None) and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    return not is_open


def test_a_new_record_in_any_partition_wakes_the_query_at_once(kafka: Kafka, log: KafkaLog) -> None:
    topic, woken = kafka.create_topic(partitions=3), threading.Event()
    at = bounds_of(log, topic)
    log.watch(at, woken.set)
    assert not woken.is_set()
    kafka.produce(topic, [Record(b"new", partition=2)])
    assert is_woken(log, at, woken)


def test_kafka_is_not_asked_for_ends_while_a_fetch_waits_at_them(
    kafka: Kafka, log: KafkaLog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "WATCH_MS", 7_000)  # also on a busy machine, it is open for this test
    topic, woken = kafka.create_topic(), threading.Event()
    tp, at = TopicPartition(topic, 0), bounds_of(log, topic)
    log.watch(at, woken.set)
    with caplog.at_level(logging.DEBUG, "kafka.net.connection"):
        log.watch(at, woken.set)
        assert log.bounds_now([tp], {tp: 0}) == at
        assert "ListOffsets" not in caplog.text
        kafka.produce(topic, [Record(b"new")])
        assert is_woken(log, at, woken)
        assert log.bounds_now([tp], {tp: 0})[tp].end == 1
        assert "ListOffsets" in caplog.text


def test_the_records_of_an_open_transaction_wake_a_query_only_if_it_reads_them(kafka: Kafka) -> None:
    topic, woken, of_all = kafka.create_topic(), threading.Event(), threading.Event()
    committed = kafka_log(kafka.bootstrap, {"isolation_level": "read_committed"})
    with closing(committed), closing(kafka_log(kafka.bootstrap)) as log, kafka.open_transaction(topic, [Record(b"x")]):
        tp = TopicPartition(topic, 0)
        at = committed.bounds_now([tp])
        committed.watch(at, woken.set)
        assert log.bounds_now([tp])[tp].end > at[tp].end
        assert is_woken(log, at, of_all)
        assert not woken.is_set()


def test_a_fetch_ends_by_itself_and_without_waking_anybody(log: KafkaLog, kafka: Kafka, watch: LogWatch) -> None:
    """A frozen leader would never return: so Kafka is asked again."""
    topic, woken = kafka.create_topic(), threading.Event()
    at = bounds_of(log, topic)
    watch.begin(dict.fromkeys(at, 1), at, woken.set)
    assert ends_soon(watch, TopicPartition(topic, 0))
    assert not woken.is_set()


def test_a_log_that_was_cut_ends_its_fetch(log: KafkaLog, kafka: Kafka, watch: LogWatch) -> None:
    topic, woken = kafka.create_topic(), threading.Event()
    (tp,) = bounds_of(log, topic)
    watch.begin({tp: 1}, {tp: Bounds(0, 99)}, woken.set)
    assert ends_soon(watch, tp)
    assert not woken.is_set()


def test_without_brokers_nothing_waits_and_nothing_is_tried_for_a_while() -> None:
    tp, woken = TopicPartition("orders", 0), threading.Event()
    away = {"bootstrap_servers": "127.0.0.1:1", "bootstrap_timeout_ms": 300}
    with closing(LogWatch(away, IsolationLevel.READ_UNCOMMITTED)) as watch:
        watch.begin({tp: 1}, {tp: Bounds(0, 0)}, woken.set)
        began = time.monotonic()
        watch.begin({tp: 1}, {tp: Bounds(0, 0)}, woken.set)
        assert time.monotonic() - began < 0.2
        assert watch.bounds([tp]) is None
    assert not woken.is_set()
