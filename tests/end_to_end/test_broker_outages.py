"""Brokers die under a query: it reads what has a leader, and the rest once there is one (rule: silent-leader)."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streams import Stream, eventually, keyed, sent
from three_brokers import ThreeBrokers
from topics import Record
from verdict import judge, require_good


@pytest.fixture
def copied(three_brokers: ThreeBrokers) -> str:
    """A topic with three copies, led by broker 1."""
    return three_brokers.topic(1)


@pytest.fixture
def alone(three_brokers: ThreeBrokers) -> str:
    """A topic that only broker 2 has."""
    return three_brokers.topic_of(2)


@pytest.fixture
def stream(
    spark: SparkSession,
    three_brokers: ThreeBrokers,
    redis_url: str,
    copied: str,
    alone: str,
    group: str,
    tmp_path: Path,
) -> Stream:
    options = {
        "kafka.bootstrap.servers": three_brokers.brokers.bootstrap,
        "subscribe": f"{copied},{alone}",
        "startingOffsets": "earliest",
        "group": group,
        "redisUrl": redis_url,
    }
    return Stream(spark, options, tmp_path / "checkpoint")


def test_partitions_with_a_leader_are_read_while_another_has_none(
    stream: Stream, three_brokers: ThreeBrokers, copied: str, alone: str
) -> None:
    """It lasts until the records have come: a query that waited for the dead broker would never get them."""
    kafka, records, rest = three_brokers.kafka, keyed(60), [Record(b"of two", b"k"), Record(b"of two again", b"k")]
    kafka.produce(copied, records[:20])
    kafka.produce(alone, rest[:1])
    with stream.running(lambda: len(stream.sink.received) >= 62, "all records have come"):
        eventually(lambda: len(stream.sink.received) == 21, "the first records")
        with three_brokers.killed(2):
            kafka.produce(copied, records[20:])
            eventually(lambda: len(stream.sink.received) == 61, "the records of the broker that lives")
        kafka.produce(alone, rest[1:])
    of_rest = {value for _, value in sent(rest)}
    require_good(judge(sent(records), (d for d in stream.sink.received if d.value not in of_rest)))
    require_good(judge(sent(rest), (d for d in stream.sink.received if d.value in of_rest)))


def test_all_brokers_are_away_for_a_while__the_query_waits(
    stream: Stream, three_brokers: ThreeBrokers, copied: str
) -> None:
    kafka, records = three_brokers.kafka, keyed(60)
    kafka.produce(copied, records[:20])
    with stream.running(lambda: len(stream.sink.received) >= 60, "all records have come"):
        eventually(lambda: len(stream.sink.received) == 20, "the first records")
        with three_brokers.killed(1, 2, 3):
            pass
        kafka.produce(copied, records[20:])
    require_good(judge(sent(records), stream.sink.received))
