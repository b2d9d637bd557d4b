"""The age of records when a Python sink gets them, with few records a second and no trigger interval."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from statistics import median

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from bench import prebuilt
from bench.feed import Feed, keys
from bench.sources import reader
from bench.streaming import by_default, until
from bench.table import Result, duration
from bench.world import World

PARTS = (0.5, 0.95, 0.99)
RATES: Mapping[int, Mapping[float, float]] = {200: {0.5: 1.0, 0.99: 1.0}, 2: {0.5: 0.3, 0.99: 1.0}}
"""Records a second, and the aims for the age of these parts of them."""

SETTLED_S = 10
PHASES = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets")


@dataclass(slots=True)
class Sink:
    """Receives the batches of a query, and notes the age of each record."""

    ages: list[tuple[int, float]] = field(default_factory=list)  # CreateTime in ms, age in seconds

    def take(self, batch: DataFrame, _: int) -> None:
        """See `foreachBatch`."""
        times = [row.at for row in batch.selectExpr("unix_millis(timestamp) AS at").collect()]
        now = time.time()
        self.ages += [(at, now - at / 1000) for at in times]

    def between(self, start: float, end: float) -> list[float]:
        """The ages of records that were produced within this time, in seconds since 1970."""
        return [age for at, age in self.ages if start <= at / 1000 < end]


@dataclass(slots=True)
class Side:
    """One source: the ages of its records, and the durations of the phases of its triggers in ms."""

    name: str
    options: Mapping[str, str]
    ages: list[float] = field(default_factory=list)
    phases: list[Mapping[str, int]] = field(default_factory=list)

    def block(self, world: World, seconds: float) -> None:
        """A new query, measured once it has settled, until it has every record of this time."""
        sink = Sink()
        with _running(world, self, sink) as query:
            until(lambda: bool(sink.ages), query)
            time.sleep(SETTLED_S)
            start, end = time.time(), time.time() + seconds
            before = query.lastProgress.batchId if query.lastProgress else 0
            until(lambda: sink.ages[-1][0] / 1000 >= end, query)
            self.phases += [p.durationMs for p in query.recentProgress if p.numInputRows and p.batchId > before]
        self.ages += sink.between(start, end)

    @property
    def trigger(self) -> str:
        """The medians of a trigger's time and of its phases; Spark keeps the last hundred triggers of a query."""
        total, *parts = (median(each.get(name, 0) for each in self.phases) for name in ("triggerExecution", *PHASES))
        of = ", ".join(f"{name} {ms:.0f}" for name, ms in zip(PHASES, parts, strict=True))
        return f"{total:.0f} ms: {of}"


def p13(world: World) -> Iterator[Result]:
    """Both sources in turns, each in queries of its own, while one feed goes on; then what any Python source costs."""
    blocks, seconds = (1, 20) if world.quick else (2, 60)
    for rate in RATES:
        topic = world.kafka.create_topic("latency")
        ours = Side("coop-kafka", {**by_default(world, topic), "startingOffsets": "latest"})
        theirs = Side("kafka", {**reader(world, topic), "startingOffsets": "latest"})
        with Feed(world.broker.address, topic, keys(1_000, 0), rate).running():
            for side in (ours, theirs, theirs, ours)[: 2 * blocks]:
                side.block(world, seconds)
        yield from _lines(rate, ours, theirs)
    world.spark.dataSource.register(prebuilt.Prebuilt)
    limit = Side("prebuilt", {})
    limit.block(world, seconds / 2)
    yield Result("P13", "a trigger of a Python source that makes a few rows and asks nobody", "", limit.trigger, "")


def at_part(values: Sequence[float], part: float) -> float:
    """The smallest value that is at least as large as this part of the values: `at_part([1, 2, 3, 4], 0.5)` is 2."""
    return sorted(values)[max(0, ceil(part * len(values)) - 1)]


def _lines(rate: int, ours: Side, theirs: Side) -> Iterator[Result]:
    work = f"CreateTime to sink, {rate} records/s, 1 partition, no trigger interval, `foreachBatch`"
    for part in PARTS:
        mine, other = at_part(ours.ages, part), at_part(theirs.ages, part)
        what = f"{work}: p{100 * part:.0f}"
        yield Result("P13", what, "its defaults", duration(mine), duration(other), mine / other, RATES[rate].get(part))
    yield Result("P13", f"{work}: a trigger", "its defaults", ours.trigger, theirs.trigger)


@contextmanager
def _running(world: World, side: Side, sink: Sink) -> Iterator[StreamingQuery]:
    rows = world.spark.readStream.format(side.name).options(**side.options).load()
    writer = rows.writeStream.foreachBatch(sink.take).option("checkpointLocation", world.checkpoint())
    query = writer.start()
    try:
        yield query
    finally:
        query.stop()
