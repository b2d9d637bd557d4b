"""A pattern that matches three topics, on brokers of 3 and of 19,000. Calls our stream reader as Spark does."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from statistics import median

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from bench.loader import Load, produce
from bench.streaming import by_default
from bench.table import Result, duration
from bench.world import World
from spark_coop_source.driver.stream_reader import CoopKafkaStreamReader
from spark_coop_source.options.options import validate

MATCHING = 3
AT_ONCE = 500  # topics of one request
IDLE_S = 30.0
TRIGGERS = 30
EVERY_S = 0.5  # so that many triggers meet a new look at the topics


@dataclass(frozen=True, slots=True)
class _Cost:
    busy: float  # share of a core, while nothing is written
    triggers: list[float]  # seconds of `latestOffset` and `partitions`, each with one new record


def topics(world: World) -> Iterator[Result]:
    """The same query before and after the broker has many topics that do not match."""
    count = 1_000 if world.quick else 19_000
    matching = [world.kafka.create_topic("matching") for _ in range(MATCHING)]
    few = _cost(world, matching)
    _create(world, count)
    many = _cost(world, matching)
    work = f"subscribePattern, {MATCHING} of {MATCHING + count:,} topics match"
    against = f"a broker of {MATCHING} topics"
    idle = f"{many.busy:.1%} of a core", f"{few.busy:.1%}"
    yield Result("P19", f"{work}: idle", against, *idle, many.busy, 0.05)
    for name, of in (("median", median), ("longest", max)):
        longer = of(many.triggers) - of(few.triggers)
        sides = duration(of(many.triggers)), duration(of(few.triggers))
        yield Result("P19", f"{work}: {name} of {TRIGGERS} triggers, seconds longer", against, *sides, longer, 1.0)


def _create(world: World, count: int) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=world.broker.address, request_timeout_ms=300_000)) as admin:
        for first in range(0, count, AT_ONCE):
            names = [f"other-{n:05}" for n in range(first, min(first + AT_ONCE, count))]
            admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1) for name in names])


def _cost(world: World, matching: list[str]) -> _Cost:
    options = {**by_default(world, ""), "subscribePattern": "matching-.*", "startingOffsets": "latest"}
    del options["subscribe"]
    reader = CoopKafkaStreamReader(validate(options, streaming=True))
    try:
        start = reader.initialOffset()
        began, cpu = time.perf_counter(), time.process_time()
        while time.perf_counter() - began < IDLE_S:
            start = reader.latestOffset(start, reader.getDefaultReadLimit())
        busy = (time.process_time() - cpu) / (time.perf_counter() - began)
        triggers = []
        for n in range(TRIGGERS):
            produce(world.broker.address, matching[n % MATCHING], Load(1))
            time.sleep(EVERY_S)
            began = time.perf_counter()
            end = reader.latestOffset(start, reader.getDefaultReadLimit())
            reader.partitions(start, end)
            triggers.append(time.perf_counter() - began)
            start = end
    finally:
        reader.stop()
    return _Cost(busy, triggers)
