"""The two sources: their options, and how to run a query to its end. Ours sets no option that a case does not name.

So ours has as many `slots` as the machine has cores, and as many lanes as the planner makes.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from bench.world import SLOTS, World

TUNED: Mapping[str, str] = {
    "kafka.max.poll.records": "50000",
    "kafka.fetch.max.bytes": "52428800",
    "minPartitions": str(SLOTS),
}
"""Spark's source at its fastest: its default of 500 records a poll doubles the time."""

ONE_LANE: Mapping[str, str] = {"lanes": "1"}
"""Ours at its fastest for one partition and little work; by default it makes as many lanes as there are slots."""


def reader(world: World, topic: str) -> dict[str, str]:
    """The options of both sources."""
    return {"kafka.bootstrap.servers": world.broker.address, "subscribe": topic, "startingOffsets": "earliest"}


def named(options: Mapping[str, str]) -> str:
    """The options of ours, for the description of a row."""
    return ", ".join(f"`{name}={value}`" for name, value in options.items()) or "no option set"


def ours(world: World, topic: str, **options: str) -> DataFrame:
    """A batch of our source."""
    return world.spark.read.format("coop-kafka").options(**{**reader(world, topic), **options}).load()


def theirs(world: World, topic: str, options: Mapping[str, str] = TUNED) -> DataFrame:
    """A batch of Spark's source."""
    return world.spark.read.format("kafka").options(**{**reader(world, topic), **options}).load()


def drained(rows: DataFrame) -> None:
    """Run it to its end; its rows are dropped."""
    rows.write.format("noop").mode("overwrite").save()
