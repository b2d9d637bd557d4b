"""`spark.read` on a real broker: the offsets asked for, cut by hash, read once."""

import json
import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from kafka import KafkaAdminClient, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, IsNotNull, LessThan
from pyspark_test import assert_pyspark_df_equal

from coordinator.errors import StartingOffsetError, UnknownTopicError
from coordinator.progress.slices import Slice, weight
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import HASH_MAX
from kafka_logs import T0
from log_fixtures import compacted_log, everything, losses, odd_log
from spark_coop_source.arrow_output.schema import EVERY, PLAIN, schema
from spark_coop_source.driver import batch_reader
from spark_coop_source.driver.batch_reader import CoopKafkaBatchReader, FilteringBatchReader
from spark_coop_source.options.options import validate
from spark_coop_source.task.partition import SlicePartition
from topics import Kafka, Record


def reader(kafka: Kafka, options: Mapping[str, object]) -> CoopKafkaBatchReader:
    given = {"kafka.bootstrap.servers": kafka.bootstrap, "slots": 4, **options}
    return CoopKafkaBatchReader(validate({name: str(value) for name, value in given.items()}, streaming=False))


def tasks(kafka: Kafka, **options: object) -> list[tuple[Slice, ...]]:
    partitions = reader(kafka, options).partitions()
    return [partition.slices for partition in partitions if isinstance(partition, SlicePartition)]


def read(kafka: Kafka, **options: object) -> list[tuple[int, int]]:
    """(partition, offset) of each row, task by task."""
    batch = reader(kafka, options)
    return [
        (row["partition"], row["offset"])
        for task in batch.partitions()
        for table in batch.read(task)
        for row in table.to_pylist()
    ]


def planned_with(kafka: Kafka, filters: list[Filter], **options: object) -> tuple[dict[int, set[int]], list[Filter]]:
    """The offsets of each partition that the tasks fetch under Spark's filters, and the filters left to Spark."""
    given = {"kafka.bootstrap.servers": kafka.bootstrap, "slots": "4", **{k: str(v) for k, v in options.items()}}
    batch = FilteringBatchReader(validate(given, streaming=False))
    rest = list(batch.pushFilters(filters))
    found: dict[int, set[int]] = {}
    for each in batch.partitions():
        assert isinstance(each, SlicePartition)
        for s in each.slices:
            found.setdefault(s.partition, set()).update(range(s.offsets.start, s.offsets.until))
    return found, rest


def test_sparks_filters_cut_what_is_fetched(kafka: Kafka, three: str) -> None:
    offsets: list[Filter] = [GreaterThanOrEqual(("offset",), 20), LessThan(("offset",), 40)]
    assert planned_with(kafka, offsets, subscribe=three) == ({0: {*range(20, 40)}, 1: {*range(20, 30)}}, [])
    assert planned_with(kafka, [EqualTo(("partition",), 1)], subscribe=three) == ({1: {*range(30)}}, [])
    assert planned_with(kafka, [EqualTo(("partition",), 7)], subscribe=three) == ({}, [])
    assert planned_with(kafka, [GreaterThan(("offset",), 299)], subscribe=three) == ({}, [])
    started = planned_with(kafka, [GreaterThan(("offset",), 5)], subscribe=three, startingOffsets="earliest")
    assert started == ({0: {*range(6, 300)}, 1: {*range(6, 30)}}, [])


def test_a_time_of_sparks_filter_begins_the_read_at_its_first_record(kafka: Kafka) -> None:
    topic = kafka.create_topic("timed", partitions=2)
    times = [(0, T0), (0, T0 + 2_000), (0, T0 + 1_000), (0, T0 + 3_000), (1, T0)]
    kafka.produce(topic, [Record(b"v", partition=p, timestamp_ms=t) for p, t in times])
    of = GreaterThan(("timestamp",), datetime.fromtimestamp((T0 + 1_500) / 1000, UTC))
    assert planned_with(kafka, [of], subscribe=topic) == ({0: {1, 2, 3}}, [of])


def test_a_key_of_sparks_filter_joins_the_filter_of_the_options(kafka: Kafka, three: str) -> None:
    allow = {"filterKeysAllow": '["1","2"]'}
    given = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": three, **allow}
    batch = FilteringBatchReader(validate(given, streaming=False))
    of = In(("key",), (b"2", b"3"))
    assert list(batch.pushFilters([of, IsNotNull(("key",))])) == [IsNotNull(("key",))]
    rows = [row for task in batch.partitions() for table in batch.read(task) for row in table.to_pylist()]
    assert {row["key"] for row in rows} == {b"2"}
    assert len(rows) == 7


@pytest.fixture(scope="module")
def three(kafka: Kafka) -> str:
    """A topic of three partitions with 300, 30 and no records."""
    topic = kafka.create_topic("three", partitions=3)
    kafka.produce(topic, [Record(b"%d" % i, b"%d" % (i % 50), partition=0) for i in range(300)])
    kafka.produce(topic, [Record(b"%d" % i, b"%d" % (i % 50), partition=1) for i in range(30)])
    return topic


ALL = [(0, offset) for offset in range(300)] + [(1, offset) for offset in range(30)]


@pytest.mark.parametrize(
    ("options", "count"),
    [
        pytest.param({}, 4, id="a task for every slot"),
        pytest.param({"slots": 1}, 1, id="one slot, one task"),
        pytest.param({"lanes": 1}, 2, id="whole partitions, so two tasks"),
        pytest.param({"lanes": 16}, 4, id="more lanes than slots share tasks"),
        pytest.param({"minPartitions": 7}, 7, id="minPartitions"),
        pytest.param({"minPartitions": 2}, 4, id="minPartitions below the slots"),
        pytest.param({"includeHeaders": True}, 4, id="headers change nothing here"),
    ],
)
def test_every_record_is_read_once_however_it_is_cut(
    kafka: Kafka, three: str, options: Mapping[str, object], count: int
) -> None:
    assert len(tasks(kafka, subscribe=three, **options)) == count
    assert sorted(read(kafka, subscribe=three, **options)) == ALL


def test_tasks_are_even_and_a_key_is_in_one(kafka: Kafka, three: str) -> None:
    planned = tasks(kafka, subscribe=three, minPartitions=6)
    weights = [weight(task) for task in planned]
    assert max(weights) - min(weights) <= 300 / 3
    for hashes in cuts(64):
        here = [t for t, task in enumerate(planned) for s in task if s.partition == 0 and hashes.lo in s.hashes]
        assert len(here) == 1


def test_max_records_per_partition_bounds_the_tasks(kafka: Kafka, three: str) -> None:
    planned = tasks(kafka, subscribe=three, maxRecordsPerPartition=40)
    assert len(planned) >= 330 / 40
    assert all(weight(task) <= 40 for task in planned)
    assert sorted(read(kafka, subscribe=three, maxRecordsPerPartition=40)) == ALL


@pytest.mark.parametrize(
    ("starting", "ending", "expected"),
    [
        pytest.param(
            {"0": 290, "1": -2, "2": -2}, {"0": -1, "1": 3, "2": -1}, ALL[290:303], id="offsets, earliest and latest"
        ),
        pytest.param({"0": 300, "1": 30, "2": 0}, {"0": -1, "1": -1, "2": -1}, [], id="from the very end"),
    ],
)
def test_offsets_of_each_partition(
    kafka: Kafka, three: str, starting: dict[str, int], ending: dict[str, int], expected: list[tuple[int, int]]
) -> None:
    options = {"startingOffsets": json.dumps({three: starting}), "endingOffsets": json.dumps({three: ending})}
    assert sorted(read(kafka, subscribe=three, **options)) == expected


def test_times_choose_the_records(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(b"v", b"%d" % i, timestamp_ms=1_700_000_000_000 + 1000 * i) for i in range(20)])
    found = read(kafka, subscribe=topic, startingTimestamp=1_700_000_005_000, endingTimestamp=1_700_000_010_000)
    assert sorted(found) == [(0, offset) for offset in range(5, 10)]


def test_an_end_before_the_start_reads_nothing(kafka: Kafka, three: str) -> None:
    starting = json.dumps({three: {"0": 200, "1": 20, "2": 0}})
    assert read(kafka, subscribe=three, startingOffsets=starting, endingTimestamp=1) == []


def test_key_ranges_of_assigned_partitions(kafka: Kafka, three: str) -> None:
    half = HASH_MAX // 2
    lower = {three: {"0": [[0, half]], "1": []}}
    upper = {three: {"0": [[half + 1, HASH_MAX]]}}
    below = read(kafka, assign=json.dumps(lower))
    above = read(kafka, assign=json.dumps(upper))
    assert sorted(below + above) == ALL
    assert 0 < len(above) < 300


def test_a_pattern_that_matches_nothing_and_an_empty_topic_read_nothing(kafka: Kafka) -> None:
    assert read(kafka, subscribePattern="no-topic-is-called-so-.*") == []
    assert read(kafka, subscribe=kafka.create_topic("empty", partitions=2)) == []


def test_an_unknown_topic_is_named(kafka: Kafka) -> None:
    with pytest.raises(UnknownTopicError, match="no-such-topic"):
        read(kafka, subscribe="no-such-topic", **{"fetchOffset.numRetries": 0})


def shortened_log(kafka: Kafka) -> str:
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(b"v", b"%d" % i) for i in range(100)])
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap)) as admin:
        admin.delete_records({TopicPartition(topic, 0): 40})
    return topic


@pytest.mark.parametrize("offsets", [{"startingOffsets": 39}, {"startingOffsets": 101}, {"endingOffsets": 101}])
def test_offsets_outside_the_log_are_refused(kafka: Kafka, offsets: dict[str, int]) -> None:
    topic = shortened_log(kafka)
    given = {name: json.dumps({topic: {"0": offset}}) for name, offset in offsets.items()}
    with pytest.raises(StartingOffsetError, match=f"{topic}-0"):
        read(kafka, subscribe=topic, **given)


@pytest.mark.parametrize(
    ("start", "until", "left", "lost"),
    [
        pytest.param(0, 130, range(40, 100), ["0-39", "100-129"], id="both ends are beyond the log"),
        pytest.param(10, 20, range(0), ["10-19"], id="all of it is before the log"),
        pytest.param(110, 120, range(0), ["110-119"], id="all of it is after the log"),
        pytest.param(40, 100, range(40, 100), [], id="nothing is lost"),
    ],
)
def test_a_batch_query_without_fail_on_data_loss_reads_the_rest_and_logs_lost_offsets(
    kafka: Kafka,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    start: int,
    until: int,
    left: range,
    lost: list[str],
) -> None:
    topic = shortened_log(kafka)
    monkeypatch.setattr(batch_reader, "LOW_MS", 0)
    options = {
        "startingOffsets": json.dumps({topic: {"0": start}}),
        "endingOffsets": json.dumps({topic: {"0": until}}),
        "failOnDataLoss": False,
    }
    with caplog.at_level(logging.WARNING, "spark_coop_source.driver.batch_reader"):
        assert sorted(read(kafka, subscribe=topic, **options)) == [(0, offset) for offset in left]
    assert losses(caplog) == [f"DATA_LOSS: {topic}-0: offsets {part} are not in the log" for part in lost]


def test_a_log_that_ends_before_a_wanted_offset_is_looked_at_again(
    kafka: Kafka, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = shortened_log(kafka)
    monkeypatch.setattr(batch_reader, "sleep", lambda _: kafka.produce(topic, [Record(b"v")] * 30))
    options = {"endingOffsets": json.dumps({topic: {"0": 130}}), "failOnDataLoss": False}
    assert sorted(read(kafka, subscribe=topic, **options)) == [(0, offset) for offset in range(40, 130)]
    assert losses(caplog) == []


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_spark_reads_an_odd_log_whole(kafka: Kafka, spark: SparkSession, isolation: str) -> None:
    topic = odd_log(kafka)
    found = (
        spark.read.format("coop-kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .option("kafka.isolation.level", isolation)
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .load()
        .collect()
    )
    rows = sorted(
        (row.offset, row.key, row.value, [tuple(header) for header in row.headers or ()], row.timestampType)
        for row in found
    )
    assert [(o, k and bytes(k), v if v is None else bytes(v), h, t) for o, k, v, h, t in rows] == [
        (r.offset, r.key, r.value, r.headers, r.timestamp_type) for r in everything(kafka, topic, isolation)
    ]


def test_spark_returns_exactly_the_chosen_columns(kafka: Kafka, spark: SparkSession) -> None:
    topic = kafka.create_topic("few")
    kafka.produce(topic, [Record(b"v", b"k"), Record(None, b"k")])
    some = spark.read.format("coop-kafka").option("columns", "offset, value").option("subscribe", topic)
    found = some.option("kafka.bootstrap.servers", kafka.bootstrap).load()
    assert found.columns == ["value", "offset"]
    assert sorted(map(tuple, found.collect()), key=lambda row: row[1]) == [(b"v", 0), (None, 1)]


@pytest.mark.parametrize("include_headers", [False, True])
def test_spark_returns_the_columns_of_its_own_kafka_source(
    kafka: Kafka, spark: SparkSession, include_headers: bool
) -> None:
    at, header = datetime.now(UTC).replace(microsecond=0), ("trace", b"7f")
    ms, topic = int(at.timestamp()) * 1000, kafka.create_topic("columns", partitions=2)
    records = [
        Record(b"v", b"k", 0, (header,), ms),
        Record(None, b"k", 0, (), ms + 1),
        Record(b"\xff\x00", None, 1, (), ms + 2),
        Record(b"", b"", 1, (), ms + 3),
    ]
    kafka.produce(topic, records)
    expected = [
        (r.key, r.value, topic, r.partition, i % 2, at + timedelta(milliseconds=i), 0, list(r.headers) or None)
        for i, r in enumerate(records)
    ]
    columns = schema(EVERY if include_headers else PLAIN)
    found = spark.read.format("coop-kafka").option("includeHeaders", include_headers).option("subscribe", topic)
    assert_pyspark_df_equal(
        found.option("kafka.bootstrap.servers", kafka.bootstrap).load(),
        spark.createDataFrame([row[: len(columns)] for row in expected], columns),
        check_columns_in_order=True,
        order_by=["partition", "offset"],
    )


def test_spark_reads_a_compacted_log_and_an_empty_one(kafka: Kafka, spark: SparkSession) -> None:
    def offsets(topic: str) -> Counter[int]:
        frame = (
            spark.read.format("coop-kafka")
            .option("kafka.bootstrap.servers", kafka.bootstrap)
            .option("subscribe", topic)
            .load()
        )
        return Counter(row.offset for row in frame.select("offset").collect())

    topic = compacted_log(kafka)
    assert offsets(topic) == Counter(record.offset for record in everything(kafka, topic))
    assert offsets(kafka.create_topic("empty")) == Counter()
