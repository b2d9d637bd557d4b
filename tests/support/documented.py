"""Code and commands of the docs, executed as they stand; only names of servers, topics and folders are put in."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from broker_jars import ROOT
from command_runs import Run
from streams import DEADLINE_S, keyed
from topics import Kafka

PROGRAMS = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "jobs").glob("*.py")}
"""The most common jobs as short programs."""

KAFKA, REDIS = 'os.environ["COOP_KAFKA"]', 'os.environ["COOP_REDIS"]'
LAST = "spark.streams.awaitAnyTermination()"
WAY = re.compile(r'"orders-(by-\w+|pipeline)"')
"""In samples of SQL, Spark Connect and pipelines, which test_ways_into_spark runs."""
SHARED = {
    "import os",
    "from pyspark.sql import SparkSession",
    "spark = SparkSession.builder.getOrCreate()",
    LAST,
}


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of one language of a page below the root."""
    return re.findall(
        rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def commands(page: str) -> list[str]:
    """The commands of a page's consoles, continued lines joined."""
    texts = (text.replace("\\\n", " ") for text in blocks(page, "console"))
    return [line for text in texts for line in re.findall(r"^\$ (.*)$", text, re.MULTILINE)]


def essence(code: str) -> list[str]:
    """The lines of a program, or of a block of a page, without those that all programs share; imports first."""
    (_, _, servers) = blocks("docs/cookbook.md", "python")[0].partition("\n\n")
    for there, ours in ((servers, ""), ('"broker:9092"', KAFKA), ('"redis://redis:6379/0"', REDIS)):
        code = code.replace(there, ours)
    lines = [line for line in re.sub(r'^""".*"""\n', "", code).splitlines() if line and line not in SHARED]
    imports = sorted(line for line in lines if line.startswith(("import ", "from ")))
    return imports + [line for line in lines if line not in imports]


def program(code: str) -> str | None:
    """The name of the program that a block of a page shows, if it shows one."""
    return next((name for name, text in PROGRAMS.items() if essence(text) == essence(code)), None)


@contextmanager
def ending(query: StreamingQuery) -> Iterator[StreamingQuery]:
    """A query that ends with the body."""
    try:
        yield query
    finally:
        query.stop()


class Place:
    """The docs' names of a user's own servers, and the servers of the tests. The topic has 50 records."""

    def __init__(self, kafka: Kafka, redis_url: str, group: str, folder: Path) -> None:
        self.folder = folder
        self.topic = kafka.create_topic("orders")
        kafka.produce(self.topic, keyed(50))
        self.addresses = {"COOP_KAFKA": kafka.bootstrap, "COOP_REDIS": redis_url}
        self.options = {
            "kafka.bootstrap.servers": kafka.bootstrap,
            "redisUrl": redis_url,
            "subscribe": self.topic,
            "startingOffsets": "earliest",
            "group": group,
            "slots": "2",
        }
        self._here = {
            "localhost:9092": kafka.bootstrap,
            "broker:9092": kafka.bootstrap,
            "redis://localhost:6379/0": redis_url,
            '"redis://localhost:6379"': f'"{redis_url}"',
            '"redis://redis:6379/0"': f'"{redis_url}"',
            '"orders.parquet"': f'"{folder / "orders.parquet"}"',
            '"$COOP_KAFKA"': kafka.bootstrap,
            "first-job": f"{group}-first",
            "flights-.*": self.topic,
            "orders-to-lake": group,
            "orders-to-parquet": f"{group}-parquet",
            "orders-to-index": f"{group}-index",
            '"orders"': f'"{self.topic}"',
            "--topic orders": f"--topic {self.topic}",
            "scripts/flights_job.py": str(ROOT / "scripts" / "flights_job.py"),
        }

    def put_in(self, text: str) -> str:
        """A text with the names of the tests' servers."""
        for there, here in self._here.items():
            text = text.replace(there, here)
        return text

    def drained(self, rows: DataFrame, name: str) -> list[tuple[object, ...]]:
        """The rows of a stream up to its end."""
        writer = rows.writeStream.queryName(name).format("memory").trigger(availableNow=True)
        with ending(writer.option("checkpointLocation", str(self.folder / name)).start()) as query:
            assert query.awaitTermination(DEADLINE_S)
        return [tuple(row) for row in rows.sparkSession.table(name).collect()]

    def run(self, command: str, **more: str) -> str:
        """A command's output; it must succeed. `more` is added to its environment."""
        tools = f"{Path(sys.executable).parent}{os.pathsep}{Path(pyspark.__file__).parent / 'bin'}{os.pathsep}"
        done = subprocess.run(
            shlex.split(self.put_in(command)),
            cwd=self.folder,
            env=os.environ | self.addresses | more | {"PATH": tools + os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


class Kitchen:
    """Runs recipes and programs against the servers of the tests, on a topic of 50 records and 50 keys."""

    def __init__(self, spark: SparkSession, kafka: Kafka, run: Run, group: str, folder: Path) -> None:
        self._spark, self._run, self.group, self._folder = spark, run, group, folder
        self.topic = kafka.create_topic("orders")
        self.here: dict[str, str] = {}  # more of the code's names

    def put_in(self, code: str) -> str:
        """Code with the names of the tests."""
        code = re.sub(r'"(?=checkpoints/|lake/|orders\.parquet)', f'"{self._folder}/', code.replace(LAST, ""))
        usual = {
            "orders-to-": f"{self.group}-",
            '"orders"': f'"{self.topic}"',
            "--topic orders ": f"--topic {self.topic} ",
        }
        for there, ours in (self.here | usual).items():
            code = code.replace(there, ours)
        return code

    def start(self, code: str, names: dict[str, Any] | None = None, **more: object) -> None:
        """Run code with these names; its queries go on."""
        names = {} if names is None else names
        names |= {"spark": self._spark} | more
        exec(self.put_in(code), names)  # it is our own

    def finish(self) -> None:
        """Let all queries read everything, then stop them."""
        for query in self._spark.streams.active:
            query.processAllAvailable()
        self.stop()

    def stop(self) -> None:
        """Stop all queries."""
        for query in self._spark.streams.active:
            query.stop()
            query.awaitTermination(DEADLINE_S)

    def cook(self, code: str, names: dict[str, Any] | None = None, **more: object) -> None:
        """Run code with these names until it has read everything."""
        self.start(code, names, **more)
        self.finish()

    def run(self, command: str) -> tuple[object, str, str]:
        """Exit code, stdout and stderr of a command of `coop-kafka`."""
        return self._run(*shlex.split(self.put_in(command))[1:])

    def rows(self, folder: str) -> list[Any]:
        """The rows of a folder of Parquet files."""
        return self._spark.read.parquet(str(self._folder / folder)).collect()
