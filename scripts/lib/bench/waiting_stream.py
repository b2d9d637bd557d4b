"""A streaming query of ours whose work waits, inside the read or behind it, and the figures of each batch."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from bench.functions import WAITED, spin_all, wait, wait_all
from bench.shapes import Shape
from bench.streaming import our_stream, their_stream
from bench.world import World
from spark_coop_source import map_batches, map_keys

_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Done:
    """One batch: its start in seconds, its time, the records of slow keys and of all others, its lanes."""

    at: float
    seconds: float
    healthy: int
    slow: int
    lanes: int = 0  # of our own source, at most a second old

    @property
    def end(self) -> float:
        """Its end."""
        return self.at + self.seconds


def inside(world: World, topic: str, **options: str) -> DataFrame:
    """The work in `read`, by key, so that its cost is known exactly."""
    given = our_stream(world, topic, **map_keys(wait, WAITED), **options)
    return world.spark.readStream.format("coop-kafka").options(**given).load()


def behind(world: World, topic: str, **options: str) -> DataFrame:
    """The work in `mapInArrow`; the planner knows only the time of whole batches."""
    rows = world.spark.readStream.format("coop-kafka").options(**our_stream(world, topic, **options)).load()
    return rows.select("key", "value").mapInArrow(wait_all, WAITED)


def spinning_inside(world: World, topic: str, **options: str) -> DataFrame:
    """Work that needs a core, in `read`."""
    given = our_stream(world, topic, **map_batches(spin_all, WAITED), **options)
    return world.spark.readStream.format("coop-kafka").options(**given).load()


def spinning_behind(world: World, topic: str, **options: str) -> DataFrame:
    """The same in `mapInArrow`."""
    rows = world.spark.readStream.format("coop-kafka").options(**our_stream(world, topic, **options)).load()
    return rows.select("key", "value").mapInArrow(spin_all, WAITED)


def theirs_behind(world: World, topic: str, shape: Shape) -> DataFrame:
    """The work in `mapInArrow` behind Spark's own source."""
    rows = world.spark.readStream.format("kafka").options(**their_stream(world, topic, shape.options)).load()
    return shape.of(rows).select("key", "value").mapInArrow(wait_all, WAITED)


@contextmanager
def counted(world: World, rows: DataFrame, slow: str = "") -> Iterator[StreamingQuery]:
    """The query, into a sink that does nothing; Spark counts its rows as they pass."""
    records = f.when(f.col("key").cast("string").isin(*slow.split(",")), f.col("records"))
    of_all = f.coalesce(f.sum("records"), f.lit(0)).alias("all")
    watched = rows.observe("work", of_all, f.coalesce(f.sum(records), f.lit(0)).alias("slow"))
    query = watched.writeStream.format("noop").option("checkpointLocation", world.checkpoint()).start()
    try:
        yield query
    finally:
        query.stop()


class NoBatchError(RuntimeError):
    """No batch ended in time: the work is too much for the query."""


class Story:
    """The batches of a query as they end: Spark itself keeps only the last hundred."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query, self._seen = query, dict[int, Done]()

    @property
    def batches(self) -> list[Done]:
        """The batches so far that read something."""
        return [done for _, done in sorted(self._seen.items())]

    def watch(self, batches: int, seconds: float) -> list[Done]:
        """Wait for this many batches, but not longer than `seconds`; returns them.

        Raises `NoBatchError` if there is none, `RuntimeError` if the query fails.
        """
        before, until = len(self._seen), time.monotonic() + seconds
        while time.monotonic() < until and len(self._seen) < before + batches:
            if self._query.exception() is not None:
                raise RuntimeError(f"the query failed: {self._query.exception()}")
            self._seen |= {
                progress["batchId"]: _done(progress)
                for progress in self._query.recentProgress
                if progress["numInputRows"]
            }
            time.sleep(_POLL_S)
        if not self.batches[before:]:
            raise NoBatchError(f"no batch ended in {seconds:g} s; last progress: {self._query.lastProgress}")
        return self.batches[before:]


def lanes_of(progress: str) -> int:
    """Number of lanes in the JSON of a batch's progress; 0 for a source without lanes."""
    latest = json.loads(progress)["sources"][0]["latestOffset"] or {}
    return int(latest.get("#", {}).get("lanes", 0))


def _done(progress: StreamingQueryProgress) -> Done:
    row = progress["observedMetrics"]["work"]
    counts = row if isinstance(row, Mapping) else row.asDict()
    at = datetime.fromisoformat(progress["timestamp"]).timestamp()
    slow = int(counts["slow"])
    took = progress["durationMs"]["triggerExecution"] / 1000
    return Done(at, took, int(counts["all"]) - slow, slow, lanes_of(progress.json))
