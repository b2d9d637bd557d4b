"""Streaming queries for tests: started with few words, observed batch by batch."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import monotonically_increasing_id, spark_partition_id
from pyspark.sql.streaming.query import StreamingQuery

from coordinator.errors import UnknownGroupError
from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import GroupState
from coordinator.redis.snapshot import read_group
from topics import Record
from verdict import Delivery, Sent

DEADLINE_S = 180  # the first query of a session on a busy machine takes two minutes


def eventually(condition: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Look again and again until `condition` holds; fails with `what` after the deadline."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"not within {deadline_s} s: {what}"
        time.sleep(0.05)


@dataclass
class Sink:
    """Collects the batches of `foreachBatch`; a test can make one of them fail or be slow."""

    received: list[Delivery] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    tasks: dict[int, int] = field(default_factory=dict)  # batch id -> number of input partitions with rows
    before: Callable[[int], None] = lambda batch_id: None

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        self.before(batch_id)
        place = monotonically_increasing_id()
        found = rows.select(
            spark_partition_id().alias("task"), place.alias("place"), "partition", "offset", "key", "value"
        )
        deliveries = [
            Delivery(batch_id, r.task, r.place, r.offset, _text(r.key), _text(r.value)) for r in found.collect()
        ]
        self.received += deliveries
        self.batches.append(batch_id)
        self.tasks[batch_id] = len({d.input_partition for d in deliveries})

    @property
    def offsets(self) -> list[int]:
        """Every offset that came, repeats included, ascending; for topics of one partition."""
        return sorted(d.offset for d in self.received)


def _text(value: bytes | None) -> str | None:
    return None if value is None else bytes(value).decode()


@dataclass
class Stream:
    """One query's options and checkpoint: start it, stop it, start it again."""

    spark: SparkSession
    options: dict[str, str]
    checkpoint: Path
    sink: Sink = field(default_factory=Sink)

    def start(self, trigger: dict[str, Any] | None = None, **options: str) -> StreamingQuery:
        """Start the query; `options` go over the stream's own."""
        rows = self.spark.readStream.format("coop-kafka").options(**(self.options | options)).load()
        writer = rows.writeStream.foreachBatch(self.sink).option("checkpointLocation", str(self.checkpoint))
        return (writer.trigger(**trigger) if trigger else writer).start()

    def run(self, **options: str) -> None:
        """Run with AvailableNow until it ends; raises what the query raises."""
        query = self.start({"availableNow": True}, **options)
        try:
            assert query.awaitTermination(DEADLINE_S), "AvailableNow does not end"
        finally:
            query.stop()

    @contextmanager
    def running(self, until: Callable[[], bool], what: str, **options: str) -> Iterator[StreamingQuery]:
        """Run the default trigger while the body of `with` runs, and on until a condition holds."""
        query = self.start(None, **options)
        try:
            yield query
            eventually(lambda: until() or query.exception() is not None, what)
            assert query.exception() is None, query.exception()
        finally:
            query.stop()


def keyed(count: int, first: int = 0) -> list[Record]:
    """Records with 20 keys, every seventh without one; the value shows the order."""
    return [Record(str(i).encode(), None if i % 7 == 0 else b"key-%d" % (i % 20)) for i in range(first, first + count)]


def sent(records: list[Record]) -> list[Sent]:
    return [(_text(r.key), _text(r.value)) for r in records]


def state(stream: Stream) -> GroupState:
    with closing(RedisClient(stream.options["redisUrl"])) as client:
        return read_group(client, stream.options["group"])


def stable(stream: Stream) -> set[int]:
    """The stable offsets of all partitions; empty while the group does not exist."""
    try:
        return set(state(stream).stable.values())
    except UnknownGroupError:
        return set()
