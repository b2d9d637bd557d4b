"""Fetches that wait for new records at the ends of logs, at a real broker."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing

import pytest
from kafka.protocol.consumer import IsolationLevel

from coordinator.kafka.log import KafkaLog
from coordinator.kafka.watch import AGAIN_S, WATCH_MS, LogWatch
from coordinator.values.subscription import TopicPartition, Topics
from kafka_logs import kafka_log
from topics import Kafka, Record

SOON_S = 20.0
"""Much longer than a fetch stays open, for a busy machine."""
BROKER = 1


@pytest.fixture
def watch(kafka: Kafka) -> Iterator[LogWatch]:
    with closing(LogWatch({"bootstrap_servers": kafka.bootstrap}, IsolationLevel.READ_UNCOMMITTED)) as watch:
        yield watch


def ends_of(log: KafkaLog, topic: str) -> dict[TopicPartition, int]:
    tps = [TopicPartition(topic, n) for n in log.topics(Topics((topic,)))[topic].partitions]
    return {tp: bounds.end for tp, bounds in log.bounds_now(tps).items()}


def is_woken(log: KafkaLog, ends: Mapping[TopicPartition, int], woken: threading.Event) -> bool:
    """Whether a query that begins to wait again and again is woken in time."""
    deadline = time.monotonic() + SOON_S
    while not woken.wait(0.05) and time.monotonic() < deadline:
        log.watch(ends, woken.set)
    return woken.is_set()


def ends_soon(watch: LogWatch) -> bool:
    """Whether the broker answers its fetch in time."""
    deadline = time.monotonic() + SOON_S
    while (waits := watch.waits_for(BROKER)) and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    return not waits


def test_a_new_record_in_any_partition_wakes_the_query(kafka: Kafka, log: KafkaLog) -> None:
    topic, woken = kafka.create_topic(partitions=3), threading.Event()
    ends = ends_of(log, topic)
    log.watch(ends, woken.set)
    assert not woken.is_set()
    kafka.produce(topic, [Record(b"new", partition=2)])
    assert is_woken(log, ends, woken)


def test_the_records_of_an_open_transaction_wake_a_query_only_if_it_reads_them(kafka: Kafka) -> None:
    topic, woken, of_all = kafka.create_topic(), threading.Event(), threading.Event()
    committed = kafka_log(kafka.bootstrap, {"isolation_level": "read_committed"})
    with closing(committed), closing(kafka_log(kafka.bootstrap)) as log, kafka.open_transaction(topic, [Record(b"x")]):
        ends = ends_of(committed, topic)
        committed.watch(ends, woken.set)
        assert ends_of(log, topic).values() != ends.values()
        assert is_woken(log, ends, of_all)
        assert not woken.is_set()


def test_it_watches_for_as_long_as_a_fetch_stays_open_at_each_end(kafka: Kafka, log: KafkaLog, watch: LogWatch) -> None:
    topic, woken = kafka.create_topic(partitions=2), threading.Event()
    ends = ends_of(log, topic)
    first, leaders = TopicPartition(topic, 0), dict.fromkeys(ends, BROKER)
    assert 0 < watch.begin(leaders, {first: ends[first]}, woken.set) <= WATCH_MS
    assert watch.begin(leaders, ends, woken.set) == 0, "the open fetch does not wait at the end of the other log"
    assert watch.begin({first: BROKER}, {first: ends[first] + 1}, woken.set) == 0, "nor at another end"
    assert watch.begin({first: BROKER}, ends, woken.set) == 0, "nor at a log without a leader"
    assert watch.begin(leaders, {first: ends[first]}, woken.set) > 0


def test_a_fetch_without_records_ends_by_itself_and_wakes_nobody(kafka: Kafka, log: KafkaLog, watch: LogWatch) -> None:
    topic, woken = kafka.create_topic(), threading.Event()
    ends = ends_of(log, topic)
    watch.begin(dict.fromkeys(ends, BROKER), ends, woken.set)
    assert ends_soon(watch)
    assert not woken.is_set()


def test_a_log_that_was_truncated_wakes_nobody(kafka: Kafka, log: KafkaLog, watch: LogWatch) -> None:
    """Its fetch is answered at once: a query that it woke would look again without a pause."""
    topic, woken = kafka.create_topic(), threading.Event()
    (tp,) = ends_of(log, topic)
    watch.begin({tp: BROKER}, {tp: 99}, woken.set)
    assert ends_soon(watch)
    assert not woken.is_set()
    assert watch.begin({tp: BROKER}, {tp: 0}, woken.set) == 0, "it may be answered at once again"


def test_a_leader_that_moved_to_a_new_broker_ends_nothing(kafka: Kafka, log: KafkaLog, watch: LogWatch) -> None:
    topic, woken = kafka.create_topic(), threading.Event()
    ends = ends_of(log, topic)
    watch.begin(dict.fromkeys(ends, 99), ends, woken.set)
    assert not watch.waits_for(99)
    watch.begin(dict.fromkeys(ends, BROKER), ends, woken.set)
    assert watch.waits_for(BROKER) or ends_soon(watch)


def test_without_brokers_nothing_waits_and_nothing_is_tried_for_a_while() -> None:
    tp, woken = TopicPartition("orders", 0), threading.Event()
    with closing(LogWatch({"bootstrap_servers": "127.0.0.1:1"}, IsolationLevel.READ_UNCOMMITTED)) as watch:
        began = time.monotonic()
        for _ in range(1_000):
            watch.begin({tp: BROKER}, {tp: 0}, woken.set)
        assert time.monotonic() - began < AGAIN_S
        assert not watch.waits_for(BROKER)
    assert not woken.is_set()
