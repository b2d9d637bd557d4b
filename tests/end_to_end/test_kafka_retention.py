"""Kafka's own group keeps the positions of an idle query (KAFKA-4682), on a broker with its shortest retention."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kafka_groups
import servers
from streams import Stream, eventually, keyed, stable
from topics import Kafka

FORGETS = ("offsets.retention.minutes=1", "offsets.retention.check.interval.ms=1000")


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[Kafka]:
    """A broker of this test's own, which forgets an offset a minute after its commit."""
    server = servers.start_broker(tmp_path, more=FORGETS)
    yield Kafka(server.address)
    server.stop()


def test_kafka_keeps_the_positions_of_an_idle_query_and_forgets_those_of_nobody(
    spark: SparkSession, forgetful: Kafka, redis_url: str, group: str, tmp_path: Path
) -> None:
    topic = forgetful.create_topic("idle")
    options = {
        "kafka.bootstrap.servers": forgetful.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "group": group,
        "redis.url": redis_url,
    }
    stream = Stream(spark, options, tmp_path / "checkpoint")
    forgetful.produce(topic, keyed(20))
    query = stream.start()
    try:
        eventually(lambda: stable(stream) == {20}, "all records are done")
        eventually(lambda: kafka_groups.committed(forgetful.bootstrap, group, topic) == {0: 20}, "the mirror has moved")
        kafka_groups.commit(forgetful.bootstrap, "nobody", topic, {0: 20})  # later than the mirror's last move
        gone = lambda: not kafka_groups.committed(forgetful.bootstrap, "nobody", topic)  # noqa: E731
        eventually(gone, "Kafka forgets the offset of a group without members")
        assert kafka_groups.committed(forgetful.bootstrap, group, topic) == {0: 20}
    finally:
        query.stop()
