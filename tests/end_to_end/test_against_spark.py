"""Rows are those of Spark's own Kafka source, record by record and column by column, on the same topics."""

import pytest
from pyspark.sql import Row, SparkSession

from log_fixtures import compacted_log, emptied_marker_log, odd_log
from topics import Kafka, Record


def append_times(kafka: Kafka) -> str:
    """A topic that keeps the broker's clock; it has three partitions."""
    topic = kafka.create_topic("appended", 3, {"message.timestamp.type": "LogAppendTime"})
    kafka.produce(topic, [Record(b"%d" % i, b"%d" % i, timestamp_ms=i) for i in range(60)], compression="lz4")
    return topic


class NoText(str):
    """A header's key that a client writes as bytes that are not UTF-8."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        return super().encode("latin-1")


def header_keys(kafka: Kafka) -> str:
    """A topic with keys of headers that are not text."""
    topic = kafka.create_topic("keys")
    keys = ("\xff\xfe", "tr\xe2\x82ce", "a\xed\xa0\x80b", "\xed\xa0", "\xf5\xc3\xa9\xc0\xaf")
    kafka.produce(topic, [Record(b"v", headers=((NoText(key), b"1"), ("text", b"2"))) for key in keys])
    return topic


@pytest.fixture(scope="module")
def topics(kafka: Kafka) -> str:
    """Topics with one of everything: each codec, nulls, headers, transactions, holes, a large record, both clocks."""
    logs = odd_log(kafka), odd_log(kafka, "zstd"), compacted_log(kafka), emptied_marker_log(kafka)
    return ",".join([*logs, append_times(kafka), header_keys(kafka)])


def rows(spark: SparkSession, source: str, options: dict[str, str]) -> list[Row]:
    found = spark.read.format(source).options(**options).load()
    return found.orderBy("topic", "partition", "offset").collect()


@pytest.mark.parametrize(("level", "headers"), [("read_committed", "true"), ("read_uncommitted", "false")])
def test_the_same_rows_come_from_both_sources(
    spark: SparkSession, kafka: Kafka, topics: str, level: str, headers: str
) -> None:
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": topics,
        "includeHeaders": headers,
        "kafka.isolation.level": level,
    }
    theirs = rows(spark, "kafka", options)
    assert len(theirs) > 200
    assert rows(spark, "coop-kafka", options) == theirs


def test_both_sources_have_the_same_schema(spark: SparkSession, kafka: Kafka) -> None:
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": "any", "includeHeaders": "true"}
    ours, theirs = (spark.read.format(source).options(**options).load().schema for source in ("coop-kafka", "kafka"))
    assert ours == theirs
