"""The job of a driver that tests kill: one member of a group, which appends each finished batch to a file as one line.

Arguments: its folder, its options as JSON, and the interval of its trigger. It stops normally when the file `stop`
appears in its folder.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import monotonically_increasing_id, spark_partition_id

from drivers import points


def append_batch(rows: DataFrame, batch: int, output: Path, more: Sequence[str] = ()) -> None:
    """Write a batch with the clock of the host, which all drivers share; in one system call, so whole or not at all.

    `more` names columns that follow those of each delivery.
    """
    place, task = monotonically_increasing_id().alias("place"), spark_partition_id().alias("task")
    found = rows.select("partition", "offset", "key", "value", task, place, *more).collect()
    deliveries = [[r.partition, r.offset, _text(r.key), _text(r.value), *r[4:]] for r in found]
    points.halt(points.BEFORE_SINK)
    line = json.dumps({"clock": time.monotonic_ns(), "pid": os.getpid(), "batch": batch, "deliveries": deliveries})
    with output.open("ab", buffering=0) as file:
        file.write(f"{line}\n".encode())
    points.halt(points.AFTER_SINK)


def _text(value: bytes | None) -> str | None:
    return None if value is None else bytes(value).decode()


def _plainly(rows: DataFrame, batch: int, folder: Path, options: Mapping[str, str]) -> None:
    append_batch(rows, batch, folder / "output")


def main(sink: Callable[[DataFrame, int, Path, Mapping[str, str]], None] = _plainly) -> None:
    """Run until the query fails or a stop is requested. The sink gets the folder and the options of the job too."""
    folder, options, pace = Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
    builder = SparkSession.builder.appName(folder.name).config("spark.sql.codegen.wholeStage", "false")
    builder = builder.config("spark.sql.streaming.minBatchesToRetain", "100000")  # tests read all offsets
    spark = builder.config("spark.sql.codegen.factoryMode", "NO_CODEGEN").getOrCreate()  # it has a short life
    writer = spark.readStream.format("coop-kafka").options(**options).load().writeStream
    writer = writer.foreachBatch(lambda rows, batch: sink(rows, batch, folder, options)).trigger(processingTime=pace)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    while not (folder / "stop").exists():
        if query.awaitTermination(1):
            return
    query.stop()


if __name__ == "__main__":
    main()
