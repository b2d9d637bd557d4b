"""Many partitions with little in each: here the cost of tasks counts, not the cost of records."""

from collections.abc import Iterator
from functools import partial

from bench.loader import Load, produce
from bench.runner import timed
from bench.sources import drained, ours, theirs
from bench.streaming import our_stream, running, their_stream, trigger_seconds
from bench.table import Result, duration
from bench.world import World


def _partitions(world: World) -> int:
    return 100 if world.quick else 500


def p4(world: World) -> Iterator[Result]:
    """A batch of 200 records from each; runs Spark's source once, because it takes minutes."""
    count = _partitions(world)
    load = Load(200 * count, partitions=count)
    topic = world.topic(load)
    mine, other = ours(world, topic), theirs(world, topic)
    drained(mine)
    seconds = timed(partial(drained, mine), world.cpu).seconds
    their_seconds = timed(partial(drained, other), world.cpu).seconds
    work = f"{count} partitions, 200 records each"
    yield Result("P4", work, "tuned, once", duration(seconds), duration(their_seconds), seconds / their_seconds, 0.02)


def p4b(world: World) -> Iterator[Result]:
    """A stream with ten new records in each partition, three times."""
    count, rounds = _partitions(world), 1 if world.quick else 3
    load = Load(10 * count, partitions=count)
    topic = world.kafka.create_topic("new-records", count)
    feed = partial(produce, world.broker.address, topic, load)
    seconds = []
    for source, options in (("coop-kafka", our_stream(world, topic)), ("kafka", their_stream(world, topic))):
        with running(world, source, options) as query:
            seconds.append(sum(trigger_seconds(query, feed, load.records) for _ in range(rounds)))
    work = f"{count} partitions, 10 new records each, {rounds} triggers in all"
    mine, other = seconds
    yield Result("P4b", work, "tuned, once", duration(mine), duration(other), mine / other, 0.1)
