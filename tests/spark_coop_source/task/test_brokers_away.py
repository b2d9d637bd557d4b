"""A task whose broker freezes reads from the next leader (rule: silent-leader). Real brokers, without Spark."""

from dataclasses import replace

import pytest

from log_fixtures import rows, task, whole
from spark_coop_source.task.partition import SlicePartition
from three_brokers import ThreeBrokers
from topics import Record

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
