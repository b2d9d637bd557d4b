"""Audits of sinks that real Spark queries have written, on real Kafka and Redis: planted faults are found and named."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit, monotonically_increasing_id, spark_partition_id, when

from command_runs import Run
from coordinator.errors import InvalidOptionError, MissingOptionError, SinkError
from coordinator.tools.audit.report import Audit
from spark_coop_source import audit
from streams import DEADLINE_S, Stream, keyed
from topics import Kafka

COUNT = 600
Plant = Callable[[Path], tuple[str, str, str]]
"""Changes a sink; returns the words of the fault: offset, kind, batch."""


def write(rows: DataFrame, batch_id: int, folder: Path) -> None:
    """A batch as docs/guarantees.md shows it."""
    place = rows.withColumns({"task": spark_partition_id(), "place": monotonically_increasing_id()})
    place.withColumn("batch", lit(batch_id)).write.mode("append").parquet(str(folder))


@pytest.fixture(scope="module")
def written(spark: SparkSession, kafka: Kafka, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Stream:
    """A query that has ended: three batches, over a log with aborted records, markers, and an end in a transaction."""
    topic, folder = kafka.create_topic("audited"), tmp_path_factory.mktemp("audited")
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    stream = Stream(
        spark, options | {"group": f"of-{topic}", "redisUrl": redis_url, "slots": "4"}, folder / "checkpoint"
    )
    for first in range(0, COUNT, 200):
        kafka.produce_committed(topic, keyed(200, first))
        kafka.produce_aborted(topic, keyed(5))
    stream.options["kafka.isolation.level"] = "read_committed"
    stream.sink = partial(write, folder=folder / "sink")  # type: ignore[assignment]
    stream.run(maxOffsetsPerTrigger="250")
    return stream


@pytest.fixture
def stream(written: Stream) -> Stream:
    """Its query, whose options a test may change."""
    return replace(written, options=dict(written.options))


@pytest.fixture
def sink(written: Stream, tmp_path: Path) -> Path:
    """A copy of what it has written."""
    return Path(shutil.copytree(written.checkpoint.parent / "sink", tmp_path / "sink"))


def audited(run: Run, stream: Stream, folder: Path) -> tuple[object, list[str], str]:
    o = stream.options
    place = ("--redis", o["redisUrl"], "--bootstrap-server", o["kafka.bootstrap.servers"])
    code, out, err = run("audit", o["group"], *place, "--topic", o["subscribe"], "--sink", f"parquet:{folder}")
    return code, out.splitlines(), err


def files_of(folder: Path) -> list[tuple[Path, pa.Table]]:
    """The files of the sink by batch."""
    found = [(path, parquet.read_table(path)) for path in folder.glob("*.parquet")]
    return sorted(((p, t) for p, t in found if len(t)), key=lambda each: each[1].column("batch")[0].as_py())


def rewrite(path: Path, table: pa.Table) -> None:
    """Replace a file, without Spark's checksum of it."""
    parquet.write_table(table, path)
    path.with_name(f".{path.name}.crc").unlink()


def lose(folder: Path) -> tuple[str, str, str]:
    path, table = files_of(folder)[0]
    lost = next(row for row, key in enumerate(table.column("key").to_pylist()) if key is not None)
    rewrite(path, table.take([row for row in range(len(table)) if row != lost]))
    return str(table.column("offset")[lost]), "lost", "0"


def repeat(folder: Path) -> tuple[str, str, str]:
    (_, first), *_, (path, last) = files_of(folder)
    at, batch = last.column_names.index("batch"), last.column("batch").slice(0, 1)
    again = first.slice(0, 1).set_column(at, last.schema.field("batch"), batch)
    rewrite(path, pa.concat_tables([last, again]))
    return str(again.column("offset")[0]), "repeated", f"0, {last.column('batch')[0]}"


def swap(folder: Path) -> tuple[str, str, str]:
    path, table = files_of(folder)[0]
    keys = table.column("key").to_pylist()
    first, second = next(
        (n, m) for n, key in enumerate(keys) for m in range(n + 1, len(keys)) if key is not None and keys[m] == key
    )
    order = list(range(len(keys)))
    order[first], order[second] = second, first
    rewrite(path, table.take(order))
    return str(table.column("offset")[first]), "out of order", "0"


def test_a_good_sink_has_no_faults(run: Run, stream: Stream, sink: Path) -> None:
    code, lines, err = audited(run, stream, sink)
    assert (code, err) == (0, "")
    assert lines[0] == f"{COUNT} records done, each exactly once in the sink: 0 lost, 0 repeated, 0 out of order."


@pytest.mark.parametrize("plant", [lose, repeat, swap])
def test_a_planted_fault_is_found_and_named_by_offset_and_batch(
    run: Run, stream: Stream, sink: Path, plant: Plant
) -> None:
    offset, kind, batch = plant(sink)
    code, lines, err = audited(run, stream, sink)
    assert (code, err) == (3, "")
    faults = [line for line in lines[lines.index("Faults:") + 2 :] if line.startswith(stream.options["subscribe"])]
    assert len(faults) == 1
    assert faults[0].startswith(f"{stream.options['subscribe']} ")
    cells = faults[0].split(maxsplit=3)
    assert (cells[1], cells[2]) == ("0", offset)
    assert cells[3].startswith(kind)
    assert batch in cells[3].removeprefix(kind)


def by_frame(stream: Stream, folder: Path) -> Audit:
    return audit(
        lambda: stream.spark.read.parquet(str(folder)),
        stream.options,
        stream.options["subscribe"],
        order=["task", "place"],
    )


@pytest.mark.parametrize("plant", [repeat])
def test_the_helper_finds_the_same_in_a_dataframe(stream: Stream, sink: Path, plant: Plant) -> None:
    good = by_frame(stream, sink)
    assert (good.good, good.total("records"), good.partitions[0].unordered) == (True, COUNT, "")
    offset, kind, _ = plant(sink)
    (fault,) = by_frame(stream, sink).partitions[0].faults
    assert (str(fault.offsets), fault.kind) == (offset, kind)


def test_the_helper_finds_a_record_in_a_later_batch(stream: Stream, sink: Path) -> None:
    rows = stream.spark.read.parquet(str(sink))
    options, topic = stream.options, stream.options["subscribe"]
    late = rows.withColumn("batch", when(col("offset") == 1, 9).otherwise(col("batch")))
    (fault, *_) = audit(late, options, f"{topic}:0").partitions[0].faults
    assert (fault.kind, str(fault.offsets), fault.batches) == ("out of order", "1", ("9",))
    assert audit(rows.drop("batch"), options, topic).partitions[0].unordered == "the sink names no batches"
    named = rows.withColumnRenamed("offset", "at").withColumn("query", lit("q")).withColumn("other", lit(topic))
    assert audit(named, options, topic, columns={"offset": "at", "topic": "other"}).good


def test_the_helper_refuses_what_it_cannot_use(stream: Stream) -> None:
    rows = stream.spark.range(3)
    with pytest.raises(MissingOptionError, match="the option group of the audit is missing"):
        audit(rows, {}, "orders")
    kafka_only = stream.options | {"redisUrl": ""}
    with pytest.raises(MissingOptionError, match=r"redisUrl"):
        audit(rows, kafka_only, "orders")


def test_the_helper_names_a_column_that_is_missing(stream: Stream, sink: Path) -> None:
    with pytest.raises(SinkError, match="has no column 'partition'; it has id"):
        audit(stream.spark.range(3), stream.options, stream.options["subscribe"])
    rows = stream.spark.read.parquet(str(sink))
    with pytest.raises(SinkError, match="has no column 'run'"):
        audit(rows, stream.options, stream.options["subscribe"], columns={"batch": "run"})
    with pytest.raises(InvalidOptionError, match="'key' is not a column of an audit"):
        audit(rows, stream.options, stream.options["subscribe"], columns={"key": "k"})


def test_sparks_file_sink_is_audited_by_its_log(run: Run, kafka: Kafka, stream: Stream, tmp_path: Path) -> None:
    folder, topic = tmp_path / "files", kafka.create_topic("files")
    stream.options |= {"subscribe": topic, "group": f"of-{topic}"}
    kafka.produce(topic, keyed(300))
    rows = stream.spark.readStream.format("coop-kafka").options(**stream.options, maxOffsetsPerTrigger="100").load()
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder))
    assert query.awaitTermination(DEADLINE_S)
    parquet.write_table(
        pa.table({"topic": [stream.options["subscribe"]], "partition": [0], "offset": [0]}),
        folder / "never-committed.parquet",
    )
    code, lines, err = audited(run, stream, folder)
    assert (code, err, len(lines)) == (0, "", 3)
    assert lines[0].startswith("300 records done, each exactly once in the sink")
    victim = next(path for path in sorted(folder.glob("part-*.parquet")) if parquet.read_metadata(path).num_rows)
    victim.unlink()
    code, lines, _ = audited(run, stream, folder)
    assert code == 3
    assert " 0 lost" not in lines[0]
