"""A listener of a real query: every field that the query writes is on the page, and becomes a value and a metric."""

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession

from pages.metrics import PROGRESS
from spark_coop_source import OnError, map_keys
from spark_coop_source.function.rows import KeyRecords
from spark_coop_source.metrics.listener import ProgressListener
from spark_coop_source.metrics.prometheus import FAMILIES, PREFIX, ProgressMetrics
from spark_coop_source.metrics.query_progress import QueryProgress, of_progress
from streams import DEADLINE_S, Stream, eventually
from topics import Kafka, Record


class Watcher:
    """Both callbacks at once; keeps what each of them had after each progress."""

    def __init__(self) -> None:
        self.metrics = ProgressMetrics(CollectorRegistry())
        self.seen: list[QueryProgress] = []
        self.scrapes: list[dict[str, float]] = []

    def __call__(self, progress: QueryProgress) -> None:
        self.metrics(progress)
        self.seen.append(progress)
        self.scrapes.append(self.samples())
        raise RuntimeError("a mistake of the user's callback")

    def samples(self) -> dict[str, float]:
        families = self.metrics.collect()
        return {sample.name.removeprefix(PREFIX): sample.value for family in families for sample in family.samples}

    def ended(self, run_id: str) -> None:
        self.metrics.ended(run_id)


@pytest.fixture
def watcher(spark: SparkSession) -> Iterator[Watcher]:
    """A watcher of all queries of the session."""
    made = Watcher()
    listener = ProgressListener(made)
    spark.streams.addListener(listener)
    yield made
    spark.streams.removeListener(listener)


def test_every_field_of_a_query_is_explained_and_becomes_a_value_and_a_metric(
    kafka: Kafka, stream: Stream, watcher: Watcher
) -> None:
    def work(key: bytes | None, batch: KeyRecords) -> pa.RecordBatch:
        if key == b"key-7":
            raise ValueError("no such order")
        return batch.arrow.select(["key"])

    topic = stream.options["subscribe"]
    kafka.produce(topic, [Record(b"v", b"key-%d" % (i % 20)) for i in range(200)])
    inside = map_keys(work, "key binary", on_error=OnError(attempts=1, then="skip"))
    limits = {"filterKeysDeny": '["key-3"]', "maxOffsetsPerTrigger": "60"}
    rows = stream.spark.readStream.format("coop-kafka").options(**stream.options | inside | limits).load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(stream.checkpoint)).queryName("to_lake")
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(DEADLINE_S), "AvailableNow does not end"
    finally:
        query.stop()
    written = [progress.json for progress in query.recentProgress]
    eventually(lambda: not watcher.samples(), "the end of the query has come to the listener")

    reports = [json.loads(text)["sources"][0]["latestOffset"] for text in written]
    assert {name for report in reports if report for name in report.get("#", {})} == {m.name for m in PROGRESS}
    assert [*watcher.seen] == [progress for text in written for progress in of_progress(text)]
    last = watcher.seen[-1]
    assert (last.name, last.group, last.log_ends) == ("to_lake", stream.options["group"], {(topic, 0): 200})
    assert last.filtered_records in range(1, 11), "the last batch, and reports that come too late, do not count"
    assert last.skipped_records in range(1, 11)
    assert watcher.seen[0].max_offsets_behind_latest == 140.0
    for progress, samples in zip(watcher.seen, watcher.scrapes, strict=True):
        values = {f"{f.name}{'_total' * f.counter}": getattr(progress, f.name) for f in FAMILIES}
        shown = {name: value for name, value in values.items() if value is not None}
        assert samples == shown | {"log_end_offset": 200.0}
