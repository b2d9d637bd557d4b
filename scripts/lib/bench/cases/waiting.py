"""Work that waits, each key in order: `mapInRead.concurrency` beside parallel-consumer, a Java library.

Its Java program is compiled by `java` itself as it starts, which takes a JDK, not only a JRE.
"""

import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bench.functions import WAITED, wait
from bench.runner import Pair, Sample, timed
from bench.sources import drained, ours
from bench.table import Result, result
from bench.world import SLOTS, World
from broker_jars import PARALLEL_CONSUMER
from spark_coop_source.map_in_read import map_in_read
from topics import Record

AGAINST = "parallel-consumer 0.5.3.3"
RECORDS, KEYS, LONGEST_US = 10_000, 1_000, 5_000
_PROGRAM = Path(__file__).with_name("WaitingConsumer.java")


def p12(world: World) -> Iterator[Result]:
    """The same waits on both sides: a record's value says how long it takes."""
    if not _java_compiles():
        yield Result(
            "P12", "waiting work", AGAINST, "skipped", "", note="java here is a JRE, it takes a JDK to compile"
        )
        return
    world.fetch(PARALLEL_CONSUMER)
    topic = _topic(world)
    with _running(world, topic) as theirs:
        for concurrency in (16, 100):
            yield _compared(world, topic, theirs, concurrency)


def _java_compiles() -> bool:
    modules = subprocess.run(["java", "--list-modules"], capture_output=True, text=True, check=False)  # noqa: S607
    return "jdk.compiler" in modules.stdout


def _topic(world: World) -> str:
    topic = world.kafka.create_topic("waiting")
    chance = random.Random(12)  # noqa: S311  not for secrets
    records = (Record(b"%d" % chance.randrange(LONGEST_US), b"%d" % chance.randrange(KEYS)) for _ in range(RECORDS))
    world.kafka.produce(topic, records)
    return topic


@dataclass(frozen=True, slots=True)
class _Theirs:
    """Their program, and the lines that it takes and gives."""

    asked: IO[str]
    said: IO[str]

    def seconds(self, concurrency: int) -> float:
        """All records once; raises `RuntimeError` if the program has ended."""
        self.asked.write(f"{concurrency}\n")
        self.asked.flush()
        return float(self.line())

    def line(self) -> str:
        line = self.said.readline().strip()
        if not line:
            raise RuntimeError("parallel-consumer's program has ended; what it said is above")
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


def _compared(world: World, topic: str, theirs: _Theirs, concurrency: int) -> Result:
    function = map_in_read(wait, schema=WAITED, per_key=True, concurrency=concurrency // SLOTS)
    inside = ours(world, topic, **function)
    drained(inside)
    theirs.seconds(concurrency)
    mine: list[Sample] = []
    other: list[Sample] = []
    for _ in range(world.times):
        mine.append(timed(lambda: drained(inside), world.cpu))
        other.append(Sample(theirs.seconds(concurrency)))
    work = f"{RECORDS:,} records, 0-5 ms of waiting each, {KEYS:,} keys, key order, {concurrency} at once"
    return result(f"P12 {concurrency}", work, AGAINST, Pair(tuple(mine), tuple(other)), 1.1)
