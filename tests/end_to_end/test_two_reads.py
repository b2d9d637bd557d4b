"""Two reads of one query: refused as members of one group, at once; the remedies that the error names work."""

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from streams import DEADLINE_S, Sink, keyed
from topics import Kafka


@pytest.fixture
def options(kafka: Kafka, redis_url: str, group: str) -> dict[str, str]:
    """Options of a group on a topic of ten records."""
    topic = kafka.create_topic("two-reads")
    kafka.produce(topic, keyed(10))
    return {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "group": group,
        "redisUrl": redis_url,
        "slots": "2",
        "allowSeveralQueries": "true",
    }


def loaded(spark: SparkSession, options: dict[str, str], **more: str) -> DataFrame:
    return spark.readStream.format("coop-kafka").options(**(options | more)).load()


def finished(rows: DataFrame, folder: Path) -> list[int]:
    """The offsets that a query with AvailableNow writes to its sink."""
    sink = Sink()
    writer = rows.writeStream.foreachBatch(sink).option("checkpointLocation", str(folder))
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(DEADLINE_S), "AvailableNow does not end"
    finally:
        query.stop()
    return sink.offsets


@pytest.mark.parametrize(
    "several",
    [
        pytest.param("false", id="by default"),
        pytest.param("true", id="also where queries of one application may be members"),
    ],
)
def test_two_loads_of_one_group_in_one_query_are_refused(
    spark: SparkSession, options: dict[str, str], tmp_path: Path, several: str
) -> None:
    one, two = (loaded(spark, options, allowSeveralQueries=several) for _ in range(2))
    with pytest.raises(StreamingQueryException, match="GROUP_BUSY: two reads of one query") as refused:
        finished(one.union(two), tmp_path)
    assert "Remedy: use a group for each read" in str(refused.value)


def test_both_sides_of_a_self_join_are_two_reads(spark: SparkSession, options: dict[str, str], tmp_path: Path) -> None:
    one = loaded(spark, options)
    with pytest.raises(StreamingQueryException, match="GROUP_BUSY: two reads of one query"):
        finished(one.alias("left").join(one.select("offset"), "offset").select("left.*"), tmp_path)


def test_two_loads_with_a_group_each_are_read(spark: SparkSession, options: dict[str, str], tmp_path: Path) -> None:
    one, two = loaded(spark, options), loaded(spark, options, group=f"{options['group']}-2")
    assert finished(one.union(two), tmp_path) == sorted([*range(10)] * 2)


def test_a_union_of_one_dataframe_is_one_read(spark: SparkSession, options: dict[str, str], tmp_path: Path) -> None:
    one = loaded(spark, options, allowSeveralQueries="false")
    assert finished(one.union(one), tmp_path) == sorted([*range(10)] * 2)
