"""Filters in Spark: the rows of Spark's own Kafka source with WHERE, and a lag that reaches 0 though little passes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from kafka_groups import described
from log_fixtures import compacted_log, odd_log
from streams import Sink, Stream, eventually, stable
from topics import Kafka, Record

SIZE = "coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0)"
A_B, ODD = '["a","b"]', '["Zürich",{"hex":"00ff"},"",null]'
CASES = [
    pytest.param({"filterKeysAllow": A_B}, "key IN (X'61', X'62')", id="some keys"),
    pytest.param({"filterKeysDeny": A_B}, "key IS NULL OR key NOT IN (X'61', X'62')", id="all but some keys"),
    pytest.param(
        {"filterKeysAllow": ODD}, "key IS NULL OR key IN (X'5ac3bc72696368', X'00ff', X'')", id="keys of no text"
    ),
    pytest.param({"filterKeysDeny": "[null]"}, "key IS NOT NULL", id="records with a key"),
    pytest.param({"filterRecordBytesMax": "1"}, f"{SIZE} <= 1", id="tombstones"),
    pytest.param(
        {"filterRecordBytesMin": "3", "filterRecordBytesMax": "2000"}, f"{SIZE} BETWEEN 3 AND 2000", id="sizes"
    ),
    pytest.param(
        {"filterKeysAllow": ODD, "filterKeysDeny": "[null]", "filterRecordBytesMin": "10"},
        f"key IN (X'5ac3bc72696368', X'00ff', X'') AND {SIZE} >= 10",
        id="all together",
    ),
]


@pytest.fixture(scope="module")
def topics(kafka: Kafka) -> str:
    """Each codec, null keys and values, headers, aborted transactions, compaction holes, a large record."""
    return ",".join([odd_log(kafka), odd_log(kafka, "zstd"), compacted_log(kafka)])


def rows(spark: SparkSession, source: str, options: Mapping[str, str], where: str = "true") -> list[Row]:
    found = spark.read.format(source).options(**options).load().where(where)
    return found.orderBy("topic", "partition", "offset").collect()


@pytest.mark.parametrize(("given", "where"), CASES)
def test_a_filter_hands_over_the_rows_of_sparks_source_with_where(
    spark: SparkSession, kafka: Kafka, topics: str, given: dict[str, str], where: str
) -> None:
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topics, "includeHeaders": "true"}
    options |= {"kafka.isolation.level": "read_committed"}
    theirs = rows(spark, "kafka", options, where)
    assert 0 < len(theirs) < 240
    assert rows(spark, "coop-kafka", options | given | {"lanes": "3"}) == theirs


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_sparks_own_filters_are_pushed_and_the_rows_are_the_same(
    spark: SparkSession, kafka: Kafka, topics: str, pushdown: None
) -> None:
    """The first filter is one that the source applies only in part, the second one that it does not know."""
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topics}
    wheres = [
        "timestamp >= timestamp'2020-01-01' AND offset >= 3 AND offset < 40 AND partition = 0",
        "key IN (X'61', X'62') AND octet_length(value) > 100",
        "key = X'61' OR offset = 3",
    ]
    for where in wheres:
        theirs = rows(spark, "kafka", options, where)
        assert 0 < len(theirs) < 240
        assert rows(spark, "coop-kafka", options | {"pushFilters": "true"}, where) == theirs
    plan = spark.read.format("coop-kafka").options(**options | {"pushFilters": "true"}).load().where(wheres[0])
    shown = plan._jdf.queryExecution().executedPlan().toString()
    assert "timestamp#" in shown, "Spark compares times again"
    assert "< 40" not in shown, "the source applies the bound on offsets"


def dropped(progress: Mapping[str, Any]) -> int | None:
    """`filteredRecords` of a progress; None before the first batch."""
    latest = progress["sources"][0]["latestOffset"] or {}
    found = latest.get("#", {}).get("filteredRecords")
    return None if found is None else int(found)


def counted(progress: Sequence[StreamingQueryProgress]) -> bool:
    """Whether a progress counts dropped records: 10, then 15. On a busy machine, reports of tasks may come too late."""
    return any(dropped(json.loads(p.json)) in range(1, 16) for p in progress)


@pytest.mark.long
def test_with_99_percent_denied_lag_reaches_0_and_kafkas_own_tool_shows_it(kafka: Kafka, stream: Stream) -> None:
    topic, count = stream.options["subscribe"], 20_000
    kafka.produce(topic, [Record(b"%d" % i, b"key-%d" % (i % 100)) for i in range(count)], compression="lz4")
    given = {"filterKeysAllow": '["key-7"]', "lanes": "3"}
    with stream.running(lambda: stable(stream) == {count + 3}, "all is done", **given) as query:
        eventually(lambda: stable(stream) == {count}, "the first records are done")
        kafka.produce(topic, [Record(b"more", b"key-7"), Record(b"more", b"key-8")])
        eventually(lambda: stable(stream) == {count + 2}, "the next records are done")
        kafka.produce(topic, [Record(b"more", b"key-8")])
        eventually(lambda: stable(stream) == {count + 3}, "a dropped record alone is done")
        shown = [n for p in query.recentProgress if (n := dropped(json.loads(p.json))) is not None]
    assert sorted(d.offset for d in stream.sink.received) == [*range(7, count, 100), count]
    assert shown == sorted(shown)
    assert shown[-1] > 0, "about 19,800: a late report is missing, and a record that is fetched again counts again"
    (row,) = described(kafka.bootstrap, stream.options["group"])
    assert row[3:6] == [str(count + 3), str(count + 3), "0"]


@pytest.mark.long
def test_a_stream_without_a_group_filters_and_counts(kafka: Kafka, stream: Stream) -> None:
    topic = stream.options["subscribe"]
    kafka.produce(topic, [Record(b"%d" % i, b"key-%d" % (i % 10)) for i in range(100)])
    options = {name: text for name, text in stream.options.items() if name not in ("group", "redisUrl", "subscribe")}
    alone = Stream(stream.spark, options | {"assign": json.dumps({topic: [0]})}, stream.checkpoint, Sink())
    with alone.running(lambda: len(alone.sink.received) == 92, "all came", filterKeysDeny='["key-3"]') as q:
        eventually(lambda: len(alone.sink.received) == 90, "the first records came")
        kafka.produce(topic, [Record(b"more", b"key-3")] * 5 + [Record(b"more", b"key-4")])
        eventually(lambda: len(alone.sink.received) == 91, "the next record came")
        kafka.produce(topic, [Record(b"more", b"key-4")])
        eventually(lambda: counted(q.recentProgress), "dropped records are counted")
