"""A function inside the read, on a real broker and in Spark: streams, batches, and what a user's mistake shows."""

import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from log_fixtures import task, whole
from spark_coop_source import map_batches, map_keys
from spark_coop_source.function.rows import KeyRecords
from spark_coop_source.function.user_function import UserFunction, as_text
from spark_coop_source.task.read import read_slices
from streams import Stream, keyed
from topics import Kafka, Record

OUTPUT = StructType(
    [StructField("key", BinaryType()), StructField("offset", LongType()), StructField("upper", StringType())]
)


def of_batches() -> Any:
    """A function of batches; from within a function, so that it is pickled by value."""

    def upper(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            texts = [value.decode().upper() for value in batch.column("value").to_pylist()]
            yield pa.RecordBatch.from_pydict(
                {"key": batch.column("key"), "offset": batch.column("offset"), "upper": texts}
            )

    return upper


def of_keys() -> Any:
    def upper(key: bytes | None, batch: KeyRecords) -> pa.RecordBatch:
        texts = [value.decode().upper() for value in batch.arrow.column("value").to_pylist()]
        return pa.RecordBatch.from_pydict(
            {"key": [key] * len(batch), "offset": batch.arrow.column("offset"), "upper": texts}
        )

    return upper


def records(count: int) -> list[Record]:
    return [Record(f"value {i}".encode(), record.key) for i, record in enumerate(keyed(count))]


def test_a_batch_and_a_stream_have_the_rows_that_the_function_makes(
    spark: SparkSession, kafka: Kafka, stream: Stream
) -> None:
    sent = records(1_000)
    kafka.produce(stream.options["subscribe"], sent)
    expected = {(record.key, offset, f"VALUE {offset}") for offset, record in enumerate(sent)}
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": stream.options["subscribe"], "slots": "4"}

    rows = (
        spark.read.format("coop-kafka")
        .options(**options, **map_batches(of_batches(), "key binary, offset bigint, upper string"))
        .load()
    )
    assert rows.schema == OUTPUT
    assert {tuple(row) for row in rows.collect()} == expected
    assert rows.count() == 1_000

    received: list[tuple[int, bytes | None, int, str]] = []

    def sink(rows: DataFrame, batch_id: int) -> None:
        found = rows.selectExpr("spark_partition_id() task", "key", "offset", "upper").collect()
        received.extend((row.task, row.key and bytes(row.key), row.offset, row.upper) for row in found)

    per_key = map_keys(of_keys(), OUTPUT, concurrency=8)
    query = (
        spark.readStream.format("coop-kafka")
        .options(**stream.options, **per_key)
        .load()
        .writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(stream.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert sorted(row[2] for row in received) == list(range(1_000))
    assert {row[1:] for row in received} == expected
    for key in {record.key for record in sent} - {None}:
        of_key = [(task, offset) for task, its_key, offset, _ in received if its_key == key]
        assert len({task for task, _ in of_key}) == 1
        assert all(first < then for (_, first), (_, then) in pairwise(of_key))


def test_an_error_of_the_function_reaches_the_user_of_spark(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, records(20))
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic, "slots": "1"}

    def fails(key: bytes | None, batch: KeyRecords) -> None:
        raise KeyError("no such customer")

    rows = spark.read.format("coop-kafka").options(**options, **map_keys(fails, "key binary"))
    with pytest.raises(PySparkException) as failed:
        rows.load().collect()
    message = str(failed.value)
    assert "FUNCTION_FAILED: the function " in message
    assert re.search(rf"raised KeyError, called with {topic}-0 offsets? [0-9-]+ \(key hash [0-9a-f]{{16}}\):", message)
    assert 'raise KeyError("no such customer")' in message

    with pytest.raises(PySparkException) as refused:
        spark.read.format("coop-kafka").options(**options, **map_batches("no_such_module:f", "n long")).load()
    assert "INVALID_OPTION: option function = 'no_such_module:f'" in str(refused.value)
    with pytest.raises(PySparkException, match="PARSE_SYNTAX_ERROR"):
        spark.read.format("coop-kafka").options(**options, **map_batches("json:dumps", "n, long")).load()


def test_every_attempt_of_a_task_has_an_id_that_grows(spark: SparkSession, kafka: Kafka) -> None:
    """Reports of costs are ordered by it."""
    topic = kafka.create_topic()
    kafka.produce(topic, records(40))

    def attempt(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"id": [TaskContext.get().taskAttemptId()]})  # type: ignore[union-attr]

    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic, "slots": "2"}
    rows = spark.read.format("coop-kafka").options(**options, **map_batches(attempt, "id long")).load()
    first, second = ({row.id for row in rows.collect()} for _ in range(2))
    assert len(first) == len(second) == 2
    assert max(first) < min(second)


def test_a_function_may_be_named_of_a_module_that_every_python_can_import(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    module = tmp_path / f"functions_{tmp_path.name}.py"
    module.write_text(
        "import pyarrow as pa\n"
        "def upper(key, batch):\n"
        "    texts = [value.decode().upper() for value in batch.arrow.column('value').to_pylist()]\n"
        "    return pa.RecordBatch.from_pydict({'upper': texts})\n"
    )
    spark.sparkContext.addPyFile(str(module))
    topic = kafka.create_topic()
    kafka.produce(topic, records(100))
    rows = spark.read.format("coop-kafka").options(**{"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic})
    named = rows.options(**map_keys(f"{module.stem}:upper", "upper string")).load()
    assert sorted(row.upper for row in named.collect()) == sorted(f"VALUE {i}" for i in range(100))


def test_waiting_work_on_many_keys_takes_little_more_than_its_share(kafka: Kafka) -> None:
    """With 16 at once most calls begin while at least seven others wait; how long all takes is the machine's matter."""
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(b"v", b"%d" % (i % 200)) for i in range(2_000)])

    waiting: list[bytes | None] = []

    def wait(key: bytes | None, batch: KeyRecords) -> pa.RecordBatch:
        waiting.append(key)
        together = len(waiting)
        time.sleep(0.002 * len(batch))
        waiting.pop()
        return pa.RecordBatch.from_pydict({"n": [together]})

    function = UserFunction(as_text(wait), StructType([StructField("n", LongType())]), "keys", 16)
    made = read_slices(task(kafka, [whole(topic, 0, 2_000)]), function)
    together = [row["n"] for batch in made for row in batch.to_pylist()]
    assert median(together) >= 8
    assert max(together) <= 16


def test_the_function_receives_records_of_several_partitions_one_partition_a_batch(kafka: Kafka) -> None:
    topic = kafka.create_topic(partitions=3)
    kafka.produce(topic, [Record(b"v", b"%d" % i, partition=i % 3) for i in range(300)])

    def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            (partition,) = set(batch.column("partition").to_pylist())
            yield pa.RecordBatch.from_pydict({"n": [partition * 1_000 + len(batch)]})

    function = UserFunction(as_text(sizes), StructType([StructField("n", LongType())]), "batches")
    partition = task(kafka, [whole(topic, 0, 100, p) for p in range(3)])
    made = [row["n"] for batch in read_slices(partition, function) for row in batch.to_pylist()]
    assert made == [100, 1_100, 2_100]
