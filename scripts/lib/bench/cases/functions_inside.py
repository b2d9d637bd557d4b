"""A user's Python function over Arrow batches: inside the read, and behind it."""

from collections.abc import Iterator
from functools import partial

from pyspark.sql import DataFrame

from bench.cases.throughput import small
from bench.functions import LETTERS, letters
from bench.runner import alternate
from bench.sources import ONE_LANE, drained, named, ours, theirs
from bench.table import Result, result
from bench.world import SLOTS, World
from spark_coop_source import map_batches


def p5(world: World) -> Iterator[Result]:
    """In our read, each key in order; behind theirs, where splitting loses the order and a shuffle keeps it."""
    load = small(world)
    topic = world.topic(load)
    function = map_batches(letters, LETTERS)
    split, ordered = _mapped(theirs(world, topic)), _mapped(theirs(world, topic).repartition(SLOTS, "key"))
    for name, options, against, behind in (
        ("P5", ONE_LANE, "tuned + mapInArrow, order lost", split),
        ("P5 ordered", ONE_LANE, "tuned + repartition by key + mapInArrow", ordered),
        ("P5", {}, "tuned + mapInArrow, order lost", split),
    ):
        inside = ours(world, topic, **options, **function)
        pair = alternate(partial(drained, inside), partial(drained, behind), times=world.times, cpu=world.cpu)
        yield result(name, f"function in the read, {load.records:,} x 100 B, {named(options)}", against, pair, 0.5)


def p5m(world: World) -> Iterator[Result]:
    """The function behind both."""
    load = small(world)
    topic = world.topic(load)
    mine, other = _mapped(ours(world, topic)), _mapped(theirs(world, topic))
    pair = alternate(lambda: drained(mine), lambda: drained(other), times=world.times, cpu=world.cpu)
    yield result("P5m", f"mapInArrow, {load.records:,} x 100 B, {named({})}", "tuned + mapInArrow", pair, 1.0)


def _mapped(rows: DataFrame) -> DataFrame:
    return rows.select("key", "value").mapInArrow(letters, LETTERS)
