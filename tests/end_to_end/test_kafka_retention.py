"""Positions that must outlive a retention of one minute, and those that must not: of idle queries, of topics left."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kafka_groups
import servers
from streams import Stream, eventually, keyed, state
from topics import Kafka

FORGETS = ("offsets.retention.minutes=1", "offsets.retention.check.interval.ms=1000")


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[Kafka]:
    """A broker of this test's own, which forgets an offset a minute after its commit."""
    server = servers.start_broker(tmp_path, more=FORGETS)
    yield Kafka(server.address)
    server.stop()


@pytest.fixture
def streams(spark: SparkSession, forgetful: Kafka, redis_url: str, group: str, tmp_path: Path) -> dict[str, Stream]:
    """Three queries of one group, each with a topic of 20 records; Redis keeps a topic for a minute too."""
    made = {}
    for name in ("idle", "left", "back"):
        topic = forgetful.create_topic(name)
        forgetful.produce(topic, keyed(20))
        options = {"kafka.bootstrap.servers": forgetful.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
        options |= {"group": group, "redisUrl": redis_url, "offsetsRetention": "1m"}
        options |= {"allowSeveralQueries": "true"}
        made[name] = Stream(spark, options, tmp_path / name)
    return made


@contextmanager
def idle(stream: Stream) -> Iterator[None]:
    """The query runs, and no record comes."""
    query = stream.start()
    try:
        yield
        assert query.exception() is None
    finally:
        query.stop()


def topic_of(stream: Stream) -> str:
    return stream.options["subscribe"]


def stable_of(stream: Stream) -> list[int]:
    return [offset for tp, offset in state(stream).stable.items() if tp.topic == topic_of(stream)]


@pytest.mark.long
def test_positions_of_an_idle_query_stay_and_those_of_a_topic_that_was_left_go(
    streams: dict[str, Stream], forgetful: Kafka, group: str
) -> None:
    def mirrored(stream: Stream) -> dict[int, int]:
        return kafka_groups.committed(forgetful.bootstrap, group, topic_of(stream))

    streams["left"].run()
    streams["back"].run()
    with idle(streams["idle"]):
        eventually(lambda: mirrored(streams["idle"]) == {0: 20}, "all records are done, and the mirror has moved")
        kafka_groups.commit(forgetful.bootstrap, "nobody", topic_of(streams["idle"]), {0: 20})  # later than the mirror
        mark = f"unsubscribed {topic_of(streams['left'])}"
        eventually(lambda: mark in state(streams["idle"]).meta, "the time of the topic that was left runs")
        streams["back"].run()
        eventually(lambda: not stable_of(streams["left"]), "the topic that was left is forgotten")
        assert (stable_of(streams["back"]), mirrored(streams["left"])) == ([20], {})
        gone = lambda: not kafka_groups.committed(forgetful.bootstrap, "nobody", topic_of(streams["idle"]))  # noqa: E731
        eventually(gone, "Kafka forgets the offset of a group without members")
        assert mirrored(streams["idle"]) == {0: 20}
