"""An audit of a sink, beside the time that Spark takes to read the topic and the sink."""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from bench.loader import Load
from bench.runner import alternate
from bench.sources import TUNED, drained, reader, theirs
from bench.table import Result, result
from bench.world import World

COMMAND = Path(sys.executable).with_name("coop-kafka")
GROUP, BATCHES = "bench-audit", 10


def audit(world: World) -> Iterator[Result]:
    """Ten million records, one million with --quick: `coop-kafka audit` as a process, against two reads by Spark."""
    load = Load(1_000_000 if world.quick else 10_000_000)
    topic, folder = world.topic(load), world.folder / "audited"
    _fill(world, topic, folder, load.records // BATCHES)

    def both() -> None:
        drained(theirs(world, topic, TUNED))
        drained(world.spark.read.parquet(str(folder)).select("partition", "offset", "batch"))

    pair = alternate(partial(_audited, world, topic, folder, load.records), both, times=world.times, cpu=lambda: 0.0)
    work = f"1 partition, {load.records:,} x {load.size} B, {load.codec}, a Parquet sink of {BATCHES} batches"
    yield result("audit", work, "Spark reads both", pair, 1.0)


def _fill(world: World, topic: str, folder: Path, per_batch: int) -> None:
    """Let a query of the group write the topic to the sink."""
    options = {**reader(world, topic), "group": GROUP, "redisUrl": world.redis.address}
    rows = world.spark.readStream.format("coop-kafka").options(**options, maxOffsetsPerTrigger=per_batch).load()
    writer = rows.writeStream.foreachBatch(partial(_write, folder=str(folder)))
    query = writer.option("checkpointLocation", world.checkpoint()).trigger(availableNow=True).start()
    query.awaitTermination()


def _write(rows: DataFrame, batch_id: int, folder: str) -> None:
    rows.withColumn("batch", lit(batch_id)).write.mode("append").parquet(folder)


def _audited(world: World, topic: str, folder: Path, records: int) -> None:
    """Run the command; raises `RuntimeError` unless its verdict is good for all records."""
    addresses = {"COOP_KAFKA": world.broker.address, "COOP_REDIS": world.redis.address}
    command = [str(COMMAND), "audit", GROUP, "--topic", topic, "--sink", f"parquet:{folder}"]
    done = subprocess.run(command, env=os.environ | addresses, capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout.startswith(f"{records:,} records done, each exactly once"):
        raise RuntimeError(f"the audit ended with {done.returncode}: {done.stdout}{done.stderr}")
