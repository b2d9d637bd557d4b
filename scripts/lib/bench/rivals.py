"""Java libraries that also read one partition with many workers: their programs, to be timed or killed.

`java` compiles a program at its start, which needs a JDK; a JRE is not enough.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bench.world import World
from broker_jars import BROKER, PARALLEL_CONSUMER
from spark_coop_source.servers.java import JarSet

_PROGRAMS = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Rival:
    """A library, its program, and how long it leaves the work of a killed process, with its default settings."""

    name: str
    jars: JarSet
    program: str
    waits_s: int


BY_KEY = Rival("parallel-consumer 0.5.3.3", PARALLEL_CONSUMER, "ParallelConsumer.java", 45)
UNORDERED = Rival("a share group of Kafka 4.2 (no order)", BROKER, "ShareGroup.java", 30)
RIVALS = (BY_KEY, UNORDERED)


@dataclass(frozen=True, slots=True)
class Running:
    """A program at work, and its lines of input and output."""

    process: subprocess.Popen[str]
    requests: IO[str]
    answers: IO[str]

    def seconds(self, concurrency: int) -> float:
        """All records once; raises `RuntimeError` if the program has ended."""
        self.ask(f"{concurrency}")
        return float(self.line())

    def ask(self, line: str) -> None:
        """Begin a run."""
        self.requests.write(f"{line}\n")
        self.requests.flush()

    def line(self) -> str:
        """The next line of its output."""
        line = self.answers.readline().strip()
        if not line:
            raise RuntimeError("a rival's program has ended; its output is above")
        return line


def java_compiles() -> bool:
    """Whether `java` here is a JDK."""
    modules = subprocess.run(["java", "--list-modules"], capture_output=True, text=True, check=False)  # noqa: S607
    return "jdk.compiler" in modules.stdout


@contextmanager
def running(world: World, rival: Rival, topic: str, records: int) -> Iterator[Running]:
    """A program that is ready for its first run; it is killed at the end."""
    world.fetch(rival.jars)
    program = _PROGRAMS / rival.program
    command = ["java", "-cp", f"{rival.jars.folder}/*", str(program), world.broker.address, topic, str(records)]
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            if process.stdin and process.stdout:
                theirs = Running(process, process.stdin, process.stdout)
                theirs.line()
                yield theirs
        finally:
            process.kill()
