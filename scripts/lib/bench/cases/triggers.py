"""The cost of a trigger with almost nothing to read."""

from collections.abc import Iterator
from functools import partial

from pyspark.sql.streaming.query import StreamingQuery

from bench.loader import Load, produce
from bench.runner import Pair, Sample
from bench.sources import TUNED
from bench.streaming import our_stream, running, their_stream, trigger_seconds
from bench.table import Result, result
from bench.world import World

LANES = 8
TEN = Load(10, partitions=1, keys=1_000)
ROUNDS = 6


def p8(world: World) -> Iterator[Result]:
    """Ten records a trigger, eight tasks: blocks of triggers of one query, then of the other; the first is warm-up."""
    topic = world.kafka.create_topic("trickle")
    blocks = 1 if world.quick else 3
    samples: tuple[list[Sample], list[Sample]] = ([], [])
    sides = (
        ("coop-kafka", our_stream(world, topic, lanes=str(LANES), slots=str(LANES))),
        ("kafka", their_stream(world, topic, {**TUNED, "minPartitions": str(LANES)})),
    )
    for _ in range(blocks):
        for (source, options), of_side in zip(sides, samples, strict=True):
            of_side.extend(_block(world, source, dict(options), topic))
    pair = Pair(*map(tuple, samples))
    yield result("P8", f"{LANES} lanes, {TEN.records} records a trigger: a trigger", "tuned, 8 tasks", pair, 1.2)


def _block(world: World, source: str, options: dict[str, str], topic: str) -> list[Sample]:
    with running(world, source, options) as query:
        samples = [_sample(world, query, topic) for _ in range(ROUNDS)]
    return samples[1:]


def _sample(world: World, query: StreamingQuery, topic: str) -> Sample:
    """One trigger. Its CPU includes the polls until records came."""
    before = world.cpu()
    seconds = trigger_seconds(query, partial(produce, world.broker.address, topic, TEN), TEN.records)
    return Sample(seconds, world.cpu() - before)
