"""Work that waits, each key in order: `functionConcurrency` beside parallel-consumer, a Java library.

`java` compiles its Java program at the start, which needs a JDK; a JRE is not enough.
"""

import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import max as max_
from pyspark.sql.functions import min as min_
from pyspark.sql.functions import sum as sum_

from bench.functions import CLOCKED, COUNTED, wait_async, wait_clocked, wait_in_thread
from bench.runner import Pair, Sample, seconds, timed
from bench.sources import ours
from bench.table import Result, duration, result
from bench.world import SLOTS, World
from broker_jars import PARALLEL_CONSUMER
from spark_coop_source import map_keys
from topics import Record

AGAINST = "parallel-consumer 0.5.3.3"
RECORDS, KEYS = 10_000, 1_000
WAITS = (((0, 5), 16), ((0, 5), 100), ((10, 10), 1_000), ((100, 100), 1_000))
"""The shortest and the longest wait of a record in milliseconds, and how many keys wait at once."""

ASYNC_WAIT, ASYNC_AT_ONCE = (20, 20), (100, 500)
"""The wait of a record in milliseconds, and how many keys wait at once, with `async def`."""

_PROGRAM = Path(__file__).with_name("WaitingConsumer.java")


def p12(world: World) -> Iterator[Result]:
    """The same waits on both sides, timed from the function's first record to the end of its last.

    A record's value is its time of work. The note has the time of our whole query, planning included.
    """
    if not _java_compiles():
        yield Result(
            "P12", "waiting work", AGAINST, "skipped", "", note="java here is a JRE, it takes a JDK to compile"
        )
        return
    world.fetch(PARALLEL_CONSUMER)
    for wait_ms, concurrency in WAITS:
        topic = _topic(world, *wait_ms)
        with _running(world, topic) as theirs:
            inside = ours(world, topic, **_function(wait_clocked, CLOCKED, concurrency))
            yield _compared(world, inside, theirs, concurrency, _named(wait_ms), "P12")


def p12_async(world: World) -> Iterator[Result]:
    """Waits as coroutines beside the same waits in threads, and beside the library; timed as in `p12`."""
    topic = _topic(world, *ASYNC_WAIT)
    for at_once in ASYNC_AT_ONCE:
        yield _beside_threads(world, topic, at_once)
    if _java_compiles():
        world.fetch(PARALLEL_CONSUMER)
        with _running(world, topic) as theirs:
            for at_once in ASYNC_AT_ONCE:
                inside = ours(world, topic, **_function(wait_async, COUNTED, at_once))
                yield _compared(world, inside, theirs, at_once, _named(ASYNC_WAIT), "P12a")


def _beside_threads(world: World, topic: str, at_once: int) -> Result:
    coroutines, threads = (
        ours(world, topic, **_function(work, COUNTED, at_once)) for work in (wait_async, wait_in_thread)
    )
    _clocked(coroutines)
    _clocked(threads)
    runs = [(_clocked(coroutines), _clocked(threads)) for _ in range(world.times)]
    pair = Pair(*(tuple(map(Sample, side)) for side in zip(*runs, strict=True)))
    most = [(rows.agg(max_("threads")).head() or [0])[0] for rows in (coroutines, threads)]
    work = f"{_work(_named(ASYNC_WAIT), at_once)}, `async def`"
    compared = result(f"P12a {at_once}", work, "threads of ours", pair, None)
    rate = RECORDS / seconds(pair.ours)
    return replace(compared, note=f"{compared.note}; {rate:,.0f} records/s; a process has {most[0]} threads, {most[1]}")


def _java_compiles() -> bool:
    modules = subprocess.run(["java", "--list-modules"], capture_output=True, text=True, check=False)  # noqa: S607
    return "jdk.compiler" in modules.stdout


def _topic(world: World, shortest_ms: int, longest_ms: int) -> str:
    topic = world.kafka.create_topic("waiting")
    chance = random.Random(12)  # noqa: S311  not for secrets
    waits = (chance.randint(1_000 * shortest_ms, 1_000 * longest_ms) for _ in range(RECORDS))
    world.kafka.produce(topic, (Record(b"%d" % us, b"%d" % chance.randrange(KEYS)) for us in waits))
    return topic


@dataclass(frozen=True, slots=True)
class _Theirs:
    """Their program, and its lines of input and output."""

    requests: IO[str]
    answers: IO[str]

    def seconds(self, concurrency: int) -> float:
        """All records once; raises `RuntimeError` if the program has ended."""
        self.requests.write(f"{concurrency}\n")
        self.requests.flush()
        return float(self.line())

    def line(self) -> str:
        line = self.answers.readline().strip()
        if not line:
            raise RuntimeError("parallel-consumer's program has ended; its output is above")
        return line


@contextmanager
def _running(world: World, topic: str) -> Iterator[_Theirs]:
    command = ["java", "-cp", f"{PARALLEL_CONSUMER.folder}/*", str(_PROGRAM), world.broker.address, topic, str(RECORDS)]
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            if process.stdin and process.stdout:
                theirs = _Theirs(process.stdin, process.stdout)
                theirs.line()
                yield theirs
        finally:
            process.kill()


def _function(work: Any, schema: str, at_once: int) -> dict[str, str]:
    return map_keys(work, schema, concurrency=at_once // SLOTS)


def _named(wait_ms: tuple[int, int]) -> str:
    return "-".join(str(ms) for ms in sorted({*wait_ms}))


def _work(wait_ms: str, at_once: int) -> str:
    return f"{RECORDS:,} records, {wait_ms} ms of waiting each, {KEYS:,} keys, key order, {at_once} at once"


def _compared(world: World, inside: DataFrame, theirs: _Theirs, concurrency: int, wait_ms: str, name: str) -> Result:
    _clocked(inside)
    theirs.seconds(concurrency)
    mine: list[Sample] = []
    other: list[Sample] = []
    whole: list[Sample] = []
    for _ in range(world.times):
        whole.append(timed(lambda: mine.append(Sample(_clocked(inside))), world.cpu))
        other.append(Sample(theirs.seconds(concurrency)))
    work = _work(wait_ms, concurrency)
    compared = result(f"{name} {concurrency}", work, AGAINST, Pair(tuple(mine), tuple(other)), 1.1)
    return replace(compared, note=f"{compared.note}; our whole query {duration(seconds(whole))}")


def _clocked(inside: DataFrame) -> float:
    """Seconds from the function's first call to the end of its last."""
    began, ended, records = inside.agg(min_("began_ns"), max_("ended_ns"), sum_("records")).head() or (0, 0, 0)
    if records != RECORDS:
        raise RuntimeError(f"{records} records of {RECORDS} were read")
    return float(ended - began) / 1e9
