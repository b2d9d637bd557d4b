"""Stateful operators in real Spark: which counts are right, and who may read beside them (docs/stateful.md)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from streams import DEADLINE_S, Stream, eventually, keyed
from topics import Kafka, Record

KEYS = 10


def records(first: int) -> list[Record]:
    """Ten of each key."""
    return [replace(r, key=b"key-%d" % (i % KEYS)) for i, r in enumerate(keyed(10 * KEYS, first=first))]


def counted(stream: Stream, checkpoint: Path, **options: str) -> dict[str, int]:
    """Run a count by key on all that there is; the counts that this run has updated."""
    found: dict[str, int] = {}

    def keep(rows: Any, _: int) -> None:
        found.update({bytes(row["key"]).decode(): row["count"] for row in rows.collect()})

    rows = stream.spark.readStream.format("coop-kafka").options(**(stream.options | options)).load()
    writer = rows.groupBy("key").count().writeStream.outputMode("update").foreachBatch(keep)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(DEADLINE_S), "AvailableNow does not end"
    finally:
        query.stop()
    return found


def test_counts_are_right_on_one_checkpoint_and_start_again_on_another(
    kafka: Kafka, stream: Stream, tmp_path: Path
) -> None:
    topic, one, two = stream.options["subscribe"], tmp_path / "one", tmp_path / "two"
    kafka.produce(topic, records(0))
    assert set(counted(stream, one).values()) == {10}
    kafka.produce(topic, records(100))
    assert set(counted(stream, one).values()) == {20}, "a restart keeps its counts"
    kafka.produce(topic, records(200))
    assert set(counted(stream, two).values()) == {10}, "the keys have moved: 30 is right"
    kafka.produce(topic, records(300))
    assert set(counted(stream, one).values()) == {30}, "the first query comes back: 40 is right"


@pytest.mark.long
def test_a_checkpoint_that_reads_alone_ends_once_another_one_has_read(
    kafka: Kafka, stream: Stream, tmp_path: Path
) -> None:
    """Rule: one-application."""
    topic, one, two, never = stream.options["subscribe"], tmp_path / "one", tmp_path / "two", {"sharing": "never"}
    for first, right in ((0, 10), (100, 20)):
        kafka.produce(topic, records(first))
        assert set(counted(stream, one, **never).values()) == {right}
    kafka.produce(topic, records(200))
    assert set(counted(stream, two, **never).values()) == {10}, "a new checkpoint is a new count"
    kafka.produce(topic, records(300))
    with pytest.raises(StreamingQueryException, match=r"GROUP_NOT_SHARED.*has read it in between"):
        counted(stream, one, **never)
    assert set(counted(stream, two, **never).values()) == {20}


def test_a_second_query_beside_one_that_reads_alone_is_refused_by_name(
    kafka: Kafka, stream: Stream, tmp_path: Path
) -> None:
    """Rule: one-application."""
    kafka.produce(stream.options["subscribe"], keyed(10))
    stream.options["allowSeveralQueries"] = "true"
    with stream.running(lambda: len(stream.sink.received) == 10, "the records came", sharing="never"):
        eventually(lambda: len(stream.sink.received) == 10, "the first member lives")
        other = Stream(stream.spark, stream.options, tmp_path / "other")
        with pytest.raises(StreamingQueryException, match=r"GROUP_NOT_SHARED.*that query has sharing=never"):
            other.run()
        with pytest.raises(StreamingQueryException, match="GROUP_NOT_SHARED"):
            Stream(stream.spark, stream.options, tmp_path / "third").run(sharing="never")


def test_a_spare_that_reads_alone_waits_and_takes_over(kafka: Kafka, stream: Stream, tmp_path: Path) -> None:
    """Rules: one-application, standby-takes-over. The empty batch that Spark runs first is no read."""
    topic, never = stream.options["subscribe"], {"sharing": "never"}
    stream.options["allowSeveralQueries"] = "true"
    spare = Stream(stream.spark, stream.options, tmp_path / "spare")
    kafka.produce(topic, keyed(10))
    worker = stream.start(None, **never)
    try:
        eventually(lambda: len(stream.sink.received) == 10, "the first query works")
        with spare.running(lambda: len(spare.sink.received) == 10, "the spare took over", standby="true", **never):
            eventually((spare.checkpoint / "commits" / "0").exists, "its empty batch has ended")
            worker.stop()
            kafka.produce(topic, keyed(10, first=10))
    finally:
        worker.stop()
    assert stream.sink.offsets == list(range(10))
    assert spare.sink.offsets == list(range(10, 20))
