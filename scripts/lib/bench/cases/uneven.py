"""One of eight partitions has nearly all records: the heaviest task, as a multiple of its fair share."""

from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from bench.loader import Load, produce
from bench.sources import reader
from bench.streaming import our_stream
from bench.table import Result
from bench.world import World

SLOTS, PARTITIONS, LARGE, SMALL = 8, 8, 400_000, 100
ASKED = 16
AIM = 1.1


def p2s(world: World) -> Iterator[Result]:
    """A batch with default options and with `minPartitions`, and the first batch of a stream."""
    world.widen(SLOTS)
    topic = world.kafka.create_topic("uneven", PARTITIONS)
    produce(world.broker.address, topic, Load(SMALL * PARTITIONS, partitions=PARTITIONS))
    produce(world.broker.address, topic, Load(LARGE - SMALL))
    for what, options, tasks in (
        ("batch", {}, SLOTS),
        ("batch, minPartitions=16", {"minPartitions": str(ASKED)}, ASKED),
    ):
        mine, other = (_of_batch(world, source, topic, options) for source in ("coop-kafka", "kafka"))
        yield _row(what, tasks, mine, other)
    yield _row("first batch of a stream", SLOTS, _of_stream(world, topic), [])


def _of_batch(world: World, source: str, topic: str, options: Mapping[str, str]) -> list[int]:
    slots = {"slots": str(SLOTS)} if source == "coop-kafka" else {}
    return _rows(world.spark.read.format(source).options(**reader(world, topic), **slots, **options).load())


def _of_stream(world: World, topic: str) -> list[int]:
    found: list[list[int]] = []
    options = {**our_stream(world, topic), "startingOffsets": "earliest", "slots": str(SLOTS)}
    rows = world.spark.readStream.format("coop-kafka").options(**options).load()
    writer = rows.writeStream.option("checkpointLocation", world.checkpoint())
    query = writer.foreachBatch(lambda batch, _: found.append(_rows(batch))).trigger(availableNow=True).start()
    query.awaitTermination()
    return found[0]


def _rows(rows: DataFrame) -> list[int]:
    """The rows of each task."""
    return [int(task["count"]) for task in rows.groupBy(f.spark_partition_id()).count().collect()]


def _row(what: str, tasks: int, mine: list[int], other: list[int]) -> Result:
    ratio = max(mine) / (sum(mine) / tasks)
    note = f"{max(mine):,} of {sum(mine):,} rows in the heaviest of {len(mine)} tasks"
    theirs = f"{max(other) / (sum(other) / tasks):.2f} ({len(other)} tasks)" if other else ""
    work = f"{PARTITIONS} partitions, one with {LARGE:,} records, the others with {SMALL}, {SLOTS} slots: {what}"
    return Result("P2s", work, "fair share", f"{ratio:.2f}", theirs, ratio / AIM, 1.0, note)
