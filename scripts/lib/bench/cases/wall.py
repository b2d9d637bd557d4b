"""Our distance to the limit: a Python source that only passes prebuilt batches to the JVM."""

from collections.abc import Iterator

from bench import prebuilt
from bench.cases.throughput import small
from bench.runner import alternate
from bench.slicing import tasks
from bench.sources import drained, ours
from bench.table import Result, result
from bench.world import World
from spark_coop_source.task.read import read_slices


def wall(world: World) -> Iterator[Result]:
    """The same rows in the same batches, read from Kafka and from a mapped file."""
    load = small(world)
    topic = world.topic(load)
    folder = world.folder / "prebuilt"
    folder.mkdir()
    for number, task in enumerate(tasks(world, topic)):
        prebuilt.write(folder, number, read_slices(task))
    world.spark.dataSource.register(prebuilt.Prebuilt)
    limit = world.spark.read.format("prebuilt").option("folder", str(folder)).load()
    mine = ours(world, topic)
    pair = alternate(lambda: drained(mine), lambda: drained(limit), times=world.times, cpu=world.cpu)
    yield result("wall", f"1 partition, {load.records:,} x 100 B", "the same batches, prebuilt", pair, None)
