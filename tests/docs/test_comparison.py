"""The statements of docs/comparison.md about Spark, checked in Spark."""

from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id

from streams import Stream
from topics import Kafka, Record

RECORDS, TASKS = 40, 4
REAL_TIME: dict[str, Any] = {"realTime": "5 minutes"}  # the types of PySpark do not know it yet


@pytest.mark.parametrize(
    ("source", "tasks"),
    [pytest.param("kafka", TASKS, id="Spark's own source"), pytest.param("coop-kafka", 1, id="our source")],
)
def test_min_partitions_puts_one_key_into_several_tasks_of_sparks_source_and_into_one_of_ours(
    spark: SparkSession, kafka: Kafka, source: str, tasks: int
) -> None:
    topic = kafka.create_topic("one-key")
    kafka.produce(topic, [Record(b"%d" % number, b"customer-7") for number in range(RECORDS)])
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic, "minPartitions": str(TASKS)}
    rows = spark.read.format(source).options(**options).load().select("offset", spark_partition_id().alias("task"))
    found = rows.collect()
    assert len(found) == RECORDS
    assert len({row.task for row in found}) == tasks


def test_real_time_mode_refuses_our_source_since_it_is_written_in_python(stream: Stream) -> None:
    rows = stream.spark.readStream.format("coop-kafka").options(**stream.options).load()
    writer = rows.writeStream.format("console").outputMode("update").trigger(**REAL_TIME)
    writer = writer.option("checkpointLocation", str(stream.checkpoint))
    with pytest.raises(StreamingQueryException, match=r"STREAMING_REAL_TIME_MODE\.INPUT_STREAM_NOT_SUPPORTED"):
        writer.start().awaitTermination(60)
