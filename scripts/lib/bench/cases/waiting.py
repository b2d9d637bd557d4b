"""Work that waits, each key in order: `functionConcurrency` beside parallel-consumer and a share group."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import max as max_
from pyspark.sql.functions import min as min_
from pyspark.sql.functions import sum as sum_

from bench.functions import CLOCKED, COUNTED, wait_async, wait_clocked, wait_in_thread
from bench.rivals import BY_KEY, RIVALS, Rival, Running, java_compiles, running
from bench.runner import Pair, Sample, seconds, timed
from bench.sources import ours
from bench.table import Result, duration, result
from bench.world import SLOTS, World
from spark_coop_source import map_keys
from topics import Record

RECORDS, KEYS = 10_000, 1_000
WAITS = ((0.1, 100), (1, 100), (10, 100), (100, 1_000))
"""The wait of a record in milliseconds, and how many keys wait at once."""

ASYNC_WAIT, ASYNC_AT_ONCE = 20, (100, 500)
"""The same with `async def`."""


def p12(world: World) -> Iterator[Result]:
    """The same waits on both sides, timed from the function's first record to the end of its last.

    A record's value is its time of work. The note has the time of our whole query, planning included.
    """
    if not java_compiles():
        why = "java here is a JRE, it takes a JDK to compile"
        yield Result("P12", "waiting work", RIVALS[0].name, "skipped", "", note=why)
        return
    for wait_ms, concurrency in WAITS:
        topic = _topic(world, wait_ms)
        inside = ours(world, topic, **_function(wait_clocked, CLOCKED, concurrency))
        for rival in RIVALS:
            with running(world, rival, topic, RECORDS) as theirs:
                yield _compared(world, inside, rival, theirs, concurrency, wait_ms, "P12")


def p12_async(world: World) -> Iterator[Result]:
    """Waits as coroutines beside the same waits in threads, and beside the library; timed as in `p12`."""
    topic = _topic(world, ASYNC_WAIT)
    for at_once in ASYNC_AT_ONCE:
        yield _beside_threads(world, topic, at_once)
    if java_compiles():
        with running(world, BY_KEY, topic, RECORDS) as theirs:
            for at_once in ASYNC_AT_ONCE:
                inside = ours(world, topic, **_function(wait_async, COUNTED, at_once))
                yield _compared(world, inside, BY_KEY, theirs, at_once, ASYNC_WAIT, "P12a")


def _beside_threads(world: World, topic: str, at_once: int) -> Result:
    coroutines, threads = (
        ours(world, topic, **_function(work, COUNTED, at_once)) for work in (wait_async, wait_in_thread)
    )
    _clocked(coroutines)
    _clocked(threads)
    runs = [(_clocked(coroutines), _clocked(threads)) for _ in range(world.times)]
    pair = Pair(*(tuple(map(Sample, side)) for side in zip(*runs, strict=True)))
    most = [(rows.agg(max_("threads")).head() or [0])[0] for rows in (coroutines, threads)]
    work = f"{_work(ASYNC_WAIT, at_once)}, `async def`"
    compared = result(f"P12a {at_once}", work, "threads of ours", pair, None)
    rate = RECORDS / seconds(pair.ours)
    return replace(compared, note=f"{compared.note}; {rate:,.0f} records/s; a process has {most[0]} threads, {most[1]}")


def _topic(world: World, wait_ms: float) -> str:
    topic = world.kafka.create_topic("waiting")
    chance, wait = random.Random(12), b"%d" % (1_000 * wait_ms)  # noqa: S311  not for secrets
    world.kafka.produce(topic, (Record(wait, b"%d" % chance.randrange(KEYS)) for _ in range(RECORDS)))
    return topic


def _function(work: Any, schema: str, at_once: int) -> dict[str, str]:
    return map_keys(work, schema, concurrency=at_once // SLOTS)


def _work(wait_ms: float, at_once: int) -> str:
    return f"{RECORDS:,} records, {wait_ms:g} ms of waiting each, {KEYS:,} keys, key order, {at_once} at once"


def _compared(
    world: World, inside: DataFrame, rival: Rival, theirs: Running, concurrency: int, wait_ms: float, name: str
) -> Result:
    _clocked(inside)
    theirs.seconds(concurrency)
    mine: list[Sample] = []
    other: list[Sample] = []
    whole: list[Sample] = []
    for _ in range(world.times):
        whole.append(timed(lambda: mine.append(Sample(_clocked(inside))), world.cpu))
        other.append(Sample(theirs.seconds(concurrency)))
    work = _work(wait_ms, concurrency)
    compared = result(f"{name} {concurrency}", work, rival.name, Pair(tuple(mine), tuple(other)), 1.1)
    return replace(compared, note=f"{compared.note}; our whole query {duration(seconds(whole))}")


def _clocked(inside: DataFrame) -> float:
    """Seconds from the function's first call to the end of its last."""
    began, ended, records = inside.agg(min_("began_ns"), max_("ended_ns"), sum_("records")).head() or (0, 0, 0)
    if records != RECORDS:
        raise RuntimeError(f"{records} records of {RECORDS} were read")
    return float(ended - began) / 1e9
