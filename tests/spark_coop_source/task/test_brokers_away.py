"""Tasks whose brokers are away end early, or wait (rule: silent-leader). Real brokers and dead ports, without Spark."""

import gc
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from coordinator.errors import KafkaUnavailableError
from coordinator.progress.failing import NO_FAILURES, Failures
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition
from log_fixtures import eventually, rows, task, whole
from log_lines import own_lines
from one_address import opened_later
from spark_coop_source.task.partition import SlicePartition, TaskEnding
from three_brokers import ThreeBrokers
from told_ends import told_by
from topics import Kafka, Record

RECORDS = 30
NO_TIMEOUT = {"request_timeout_ms": 300_000}
"""kafka-python would wait that long for an answer of a frozen broker."""


@pytest.fixture
def copied(three_brokers: ThreeBrokers) -> SlicePartition:
    """A task that reads six partitions of three brokers."""
    topic = three_brokers.topic(6)
    records = [Record(b"%d" % n, b"k%d" % n, n % 6) for n in range(6 * RECORDS)]
    three_brokers.kafka.produce(topic, records)
    wanted = task(three_brokers.kafka, [whole(topic, 0, RECORDS, partition) for partition in range(6)])
    return replace(wanted, kafka={**wanted.kafka, **NO_TIMEOUT}, poll_timeout_ms=60_000, kafka_max_outage_ms=60_000)


def test_its_consumer_waits_for_a_frozen_leader__another_one_reads_from_the_next_leader(
    three_brokers: ThreeBrokers, copied: SlicePartition
) -> None:
    """With a consumer of an earlier task, which has connections to all brokers."""
    assert len(rows(copied)) == 6 * RECORDS
    with three_brokers.frozen(1):
        assert len(rows(copied)) == 6 * RECORDS


@pytest.fixture
def _sockets_collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """kafka-python leaves the sockets of failed attempts to the garbage collector: not in a later test."""
    caplog.set_level(logging.CRITICAL, logger="kafka")
    caplog.set_level(logging.WARNING, logger="spark_coop_source")
    yield
    gc.collect()


SHORTLY_MS = 300
NOWHERE = r"127\.0\.0\.1:1\b"
NOBODY = Kafka("127.0.0.1:1")
BUDGET = TaskEnding("digest", share_ms=60_000)
NO_BUDGET = TaskEnding("digest", by_time=False, early=False)


def dead(partitions: int, max_outage_ms: int = 1_000) -> SlicePartition:
    """A task of short partitions, of which no broker answers."""
    wanted = task(
        NOBODY, [whole("orders", 3, 9, partition) for partition in range(partitions)], bootstrap_timeout_ms=SHORTLY_MS
    )
    return replace(wanted, kafka_max_outage_ms=max_outage_ms)


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.usefixtures("_sockets_collected")
@pytest.mark.parametrize("partitions", [1, 2, 9])
def test_no_broker_answers_a_task_with_a_budget__it_ends_where_it_begins(partitions: int) -> None:
    """It waits once, not for each partition."""
    began = time.monotonic()
    with told_by(dead(partitions, max_outage_ms=60_000), BUDGET) as (heard, told):
        assert rows(heard) == []
    beginnings = {TopicPartition("orders", p): ((WHOLE, 3),) for p in range(partitions)}
    assert told.ended == [("digest", 0, beginnings)]
    assert told.failures == [Failures(kafka_away=True)], "its time shows nothing of its records"
    assert time.monotonic() - began < 2


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.usefixtures("_sockets_collected")
@pytest.mark.parametrize("partitions", [1, 2])
def test_no_broker_answers_a_task_without_a_budget__it_fails_after_kafka_max_outage(partitions: int) -> None:
    began = time.monotonic()
    with told_by(dead(partitions), NO_BUDGET) as (heard, told), pytest.raises(KafkaUnavailableError, match=NOWHERE):
        rows(heard)
    assert told.ended == []
    assert 1 <= time.monotonic() - began < 4


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.usefixtures("_sockets_collected")
def test_a_broker_answers_later__a_task_without_a_budget_reads_all_and_says_once_that_it_waits(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.create_topic(partitions=2)
    kafka.produce(topic, [Record(b"v", b"k", n % 2) for n in range(2 * RECORDS)])
    with opened_later(int(kafka.bootstrap.rpartition(":")[2]), 5.0) as address:
        wanted = task(
            Kafka(address),
            [whole(topic, 0, RECORDS, partition) for partition in range(2)],
            bootstrap_timeout_ms=SHORTLY_MS,
        )
        with told_by(replace(wanted, kafka_max_outage_ms=60_000), NO_BUDGET) as (heard, told):
            assert len(rows(heard)) == 2 * RECORDS
        with told_by(wanted, NO_BUDGET) as (heard, again):
            assert len(rows(heard)) == 2 * RECORDS
    assert (told.failures, again.failures) == ([Failures(kafka_away=True)], [NO_FAILURES])
    (line,) = own_lines(caplog)
    assert address in line
    assert line.endswith("the records of 2 partitions wait, for up to 60 s")


@pytest.fixture
def on_broker_2(three_brokers: ThreeBrokers) -> str:
    """A topic of one partition: only broker 2 has its records."""
    topic = three_brokers.topic_of(2)
    three_brokers.kafka.produce(topic, [Record(b"v")] * RECORDS)
    return topic


def test_the_leader_of_a_partition_is_away__a_task_without_a_budget_fails_after_kafka_max_outage(
    three_brokers: ThreeBrokers, on_broker_2: str
) -> None:
    wanted = replace(task(three_brokers.kafka, [whole(on_broker_2, 0, RECORDS)]), kafka_max_outage_ms=2_000)
    with three_brokers.killed(2), pytest.raises(KafkaUnavailableError, match=f"no leader answers for {on_broker_2}-0 "):
        rows(wanted)


def test_the_leader_of_a_partition_is_away__a_task_without_a_budget_says_once_that_its_records_wait__and_reads_them(
    three_brokers: ThreeBrokers, on_broker_2: str, caplog: pytest.LogCaptureFixture
) -> None:
    def waiting() -> list[str]:
        return [line for line in own_lines(caplog) if "wait" in line]

    wanted = replace(task(three_brokers.kafka, [whole(on_broker_2, 0, RECORDS)]), kafka_max_outage_ms=120_000)
    with ThreadPoolExecutor(1) as threads:
        with three_brokers.killed(2):
            reading = threads.submit(rows, wanted)
            eventually(waiting)
        assert len(reading.result()) == RECORDS
    (line,) = waiting()
    assert line.startswith(f"no leader answers for {on_broker_2}-0 (")
    assert line.endswith(f"; the records of {on_broker_2}-0 wait, for up to 120 s")
