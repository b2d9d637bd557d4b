"""What a new query meets: the time until its first row, and the time of a whole backlog with default options."""

import time
from collections.abc import Iterator, Mapping
from functools import partial

from pyspark.sql import DataFrame

from bench.loader import Load, produce
from bench.runner import alternate
from bench.sources import TUNED, reader
from bench.streaming import by_default, drained_stream
from bench.table import Result, duration, result
from bench.world import World

TIMES = 5


def p14(world: World) -> Iterator[Result]:
    """From `start()` to the first row in the sink, of a new query and of one that goes on."""
    topic, few = world.kafka.create_topic("first-row"), Load(10)
    produce(world.broker.address, topic, few)
    _first_row(world, *_new(world, topic, "coop-kafka"))
    _first_row(world, *_new(world, topic, "kafka"))
    took: dict[str, list[tuple[float, float]]] = {"coop-kafka": [], "kafka": []}
    for _ in range(TIMES):
        for source, seen in took.items():
            query = _new(world, topic, source)
            first = _first_row(world, *query)
            produce(world.broker.address, topic, few)
            seen.append((first, _first_row(world, *query)))
    for i, what in enumerate(("a new query", "a query that goes on")):
        mine, other = (sorted(pair[i] for pair in seen)[TIMES // 2] for seen in took.values())
        work = f"start() to the first row in the sink, warm session: {what}"
        yield Result("P14", work, "its defaults", duration(mine), duration(other), mine / other, 1.0)


def p15(world: World) -> Iterator[Result]:
    """AvailableNow over a backlog in one partition, all options of ours at their defaults."""
    load = Load(200_000 if world.quick else 4_000_000)
    topic = world.topic(load)
    for name, theirs, aim in (("tuned", TUNED, 1.2), ("its defaults", {}, 1.0)):
        other = partial(drained_stream, world, "kafka", {**reader(world, topic), **theirs})
        pair = alternate(partial(_drained, world, topic), other, times=world.times, cpu=world.cpu)
        yield result("P15", f"new query, AvailableNow, {load.records:,} x 100 B, noop", name, pair, aim)


def _drained(world: World, topic: str) -> None:
    drained_stream(world, "coop-kafka", by_default(world, topic))  # a new group each time


def _new(world: World, topic: str, source: str) -> tuple[str, Mapping[str, str], str]:
    options = by_default(world, topic) if source == "coop-kafka" else reader(world, topic)
    return source, options, world.checkpoint()


def _first_row(world: World, source: str, options: Mapping[str, str], checkpoint: str) -> float:
    ended: list[float] = []

    def note(batch: DataFrame, _: int) -> None:
        batch.write.format("noop").mode("append").save()
        ended.append(time.monotonic())

    rows = world.spark.readStream.format(source).options(**options).load()
    began = time.monotonic()
    query = rows.writeStream.option("checkpointLocation", checkpoint).foreachBatch(note).start()
    try:
        while not ended and query.exception() is None:
            time.sleep(0.005)
    finally:
        query.stop()
    return ended[0] - began
