"""The two sources with both tuned: which options each is given, and how a query of it is run to its end."""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from bench.world import SLOTS, World

TUNED: Mapping[str, str] = {
    "kafka.max.poll.records": "50000",
    "kafka.fetch.max.bytes": "52428800",
    "minPartitions": str(SLOTS),
}
"""Spark's source at its quickest: its default of 500 records a poll halves it."""

OURS: Mapping[str, str] = {"slots": str(SLOTS)}

ONE_LANE: Mapping[str, str] = {"lanes": "1"}
"""Ours at its quickest where one partition is read and little is done with it: else it is cut for as many tasks."""


def reader(world: World, topic: str) -> dict[str, str]:
    """What both sources are told."""
    return {"kafka.bootstrap.servers": world.broker.address, "subscribe": topic, "startingOffsets": "earliest"}


def ours(world: World, topic: str, **options: str) -> DataFrame:
    """A batch of our source."""
    return world.spark.read.format("coop-kafka").options(**{**reader(world, topic), **OURS, **options}).load()


def theirs(world: World, topic: str, options: Mapping[str, str] = TUNED) -> DataFrame:
    """A batch of Spark's source."""
    return world.spark.read.format("kafka").options(**{**reader(world, topic), **options}).load()


def drained(rows: DataFrame) -> None:
    """Run it to its end; nothing is done with the rows."""
    rows.write.format("noop").mode("overwrite").save()
