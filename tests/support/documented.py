"""Code and commands of a page of the docs, executed as they stand; only names of servers and topics are put in."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from broker_jars import ROOT
from streams import DEADLINE_S, keyed
from topics import Kafka


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of one language of a page below the root."""
    return re.findall(
        rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def commands(page: str) -> list[str]:
    """The commands of a page's consoles, continued lines joined."""
    texts = (text.replace("\\\n", " ") for text in blocks(page, "console"))
    return [line for text in texts for line in re.findall(r"^\$ (.*)$", text, re.MULTILINE)]


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
            '"checkpoint"': f'"{folder / "checkpoint"}"',
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
