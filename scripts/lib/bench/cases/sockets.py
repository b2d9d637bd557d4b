"""The gain of Unix sockets over TCP between Python workers and the JVM."""

from collections.abc import Iterator
from functools import partial

from bench.cases.throughput import small
from bench.loader import Load
from bench.runner import Pair, Sample, Work, timed
from bench.sources import drained, ours
from bench.table import Result, result
from bench.world import World

TASKS = 64
_ROUNDS = 2
"""Sessions of each kind, in turns: a session keeps its kind of socket."""


def sockets(world: World) -> Iterator[Result]:
    """Ours alone: many records, and many tasks of one record each."""
    many, few = small(world), Load(TASKS, partitions=TASKS)
    topics = {load: world.topic(load) for load in (many, few)}
    samples: dict[tuple[Load, bool], list[Sample]] = {(load, unix): [] for load in topics for unix in (True, False)}
    for turn in range(_ROUNDS):
        for unix in (True, False)[:: -1 if turn % 2 else 1]:
            world.talk(unix_sockets=unix)
            for load, topic in topics.items():
                samples[load, unix] += _warm(world, _reading(world, topic, load))
    world.talk(unix_sockets=True)
    for load, work in ((many, f"1 partition, {many.records:,} x {many.size} B"), (few, f"{TASKS} tasks of a record")):
        pair = Pair(tuple(samples[load, True]), tuple(samples[load, False]))
        yield result("sockets", f"{work}, Unix sockets", "ours by TCP", pair, None)


def _reading(world: World, topic: str, load: Load) -> Work:
    options = {"minPartitions": str(TASKS), "slots": str(TASKS)} if load.partitions == TASKS else {}
    return partial(drained, ours(world, topic, **options))


def _warm(world: World, work: Work) -> list[Sample]:
    work()
    return [timed(work, world.cpu) for _ in range(world.times)]
