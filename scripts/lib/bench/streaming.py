"""Streaming queries of both sources: started, fed round by round, and timed by Spark's report of its triggers."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from uuid import uuid4

from pyspark.sql.streaming.query import StreamingQuery

from bench.sources import TUNED, reader
from bench.world import World

_PATIENCE_S = 400
_POLL_S = 0.05
EVERY = "200 milliseconds"


def our_stream(world: World, topic: str, **options: str) -> Mapping[str, str]:
    """The options of a stream of ours, with its own group."""
    return {**by_default(world, topic), "startingOffsets": "latest", **options}


def by_default(world: World, topic: str) -> dict[str, str]:
    """The options of a stream of ours from the beginning of a topic, if the user sets no other."""
    return {**reader(world, topic), "group": f"bench-{uuid4().hex[:8]}", "redisUrl": world.redis.address}


def their_stream(world: World, topic: str, tuned: Mapping[str, str] = TUNED) -> Mapping[str, str]:
    """The options of a stream of Spark's source."""
    return {**reader(world, topic), **tuned, "startingOffsets": "latest"}


@contextmanager
def running(world: World, source: str, options: Mapping[str, str]) -> Iterator[StreamingQuery]:
    """A query into a sink that does nothing, after its first look at the log end."""
    rows = world.spark.readStream.format(source).options(**options).load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", world.checkpoint())
    query = writer.trigger(processingTime=EVERY).start()
    try:
        until(lambda: bool(query.recentProgress), query)
        yield query
    finally:
        query.stop()


def drained_stream(world: World, source: str, options: Mapping[str, str]) -> None:
    """A new query that reads all there is; its rows are dropped."""
    rows = world.spark.readStream.format(source).options(**options).load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", world.checkpoint())
    writer.trigger(availableNow=True).start().awaitTermination()


def trigger_seconds(query: StreamingQuery, feed: Callable[[], object], rows: int) -> float:
    """Feed the query `rows` records; returns the seconds of the triggers that read them."""
    seen = _batches(query)
    feed()

    def new() -> list[Mapping[str, object]]:
        return [progress for batch, progress in _batches(query).items() if batch not in seen]

    until(lambda: sum(int(str(progress["rows"])) for progress in new()) >= rows, query)
    return sum(float(str(progress["ms"])) for progress in new()) / 1000


def _batches(query: StreamingQuery) -> dict[int, Mapping[str, object]]:
    return {
        progress["batchId"]: {"rows": progress["numInputRows"], "ms": progress["durationMs"]["triggerExecution"]}
        for progress in query.recentProgress
        if progress["numInputRows"]
    }


def until(condition: Callable[[], bool], query: StreamingQuery) -> None:
    """Wait for the condition; raises `RuntimeError` if the query fails, or is not done after `_PATIENCE_S`."""
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if query.exception() is not None:
            raise RuntimeError(f"the query failed: {query.exception()}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"the query was not done after {_PATIENCE_S} s: {query.lastProgress}")
        time.sleep(_POLL_S)
