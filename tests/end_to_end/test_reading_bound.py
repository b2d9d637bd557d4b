"""A query whose bottleneck is the way to Kafka says so, with figures; one whose bottleneck is processing does not."""

import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import sum as sum_of

from broker_jars import BROKER
from command_runs import Run
from driver_output import driver_output
from spark_coop_source.servers.programs import in_java
from streams import Sink, Stream, eventually, stable
from topics import Kafka, Record

RECORDS, BYTES = 600, 10_000
FIRST = 10
BYTES_A_SECOND = 300_000
LINE = "So reading is the bottleneck, not processing"


def limit_client(bootstrap: str, client: str) -> None:
    """The broker sends this client so many bytes a second (Kafka's own quota)."""
    command = [*in_java(BROKER), "kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap]
    command += ["--alter", "--entity-type", "clients", "--entity-name", client]
    command += ["--add-config", f"consumer_byte_rate={BYTES_A_SECOND}"]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=True)


def records(count: int) -> list[Record]:
    return [Record(os.urandom(BYTES), b"key-%d" % (i % 40)) for i in range(count)]


@contextmanager
def running(stream: Stream, kafka: Kafka) -> Iterator[None]:
    """The query runs meanwhile. A backlog of six megabytes comes in its first batch: the second batch has all of it."""
    backlog = records(RECORDS)
    stream.sink.before = lambda batch: kafka.produce(stream.options["subscribe"], backlog) if batch == 0 else None
    query = stream.start()
    try:
        yield
        assert query.exception() is None
    finally:
        query.stop()


class Counting(Sink):
    """Counts the rows of each batch, which takes so many seconds more."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self._seconds = seconds

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        self.before(batch_id)
        assert rows.agg(sum_of("offset")).head() is not None
        time.sleep(self._seconds)


@pytest.fixture
def stream(spark: SparkSession, kafka: Kafka, redis_url: str, group: str, tmp_path: Path) -> Stream:
    """A query with a first small batch, which starts Spark's workers."""
    topic = kafka.create_topic("backlog")
    kafka.produce(topic, records(FIRST))
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "kafka.client.id": f"reader-{uuid.uuid4().hex[:8]}",
        "kafka.max.partition.fetch.bytes": "100000",
        "kafka.fetch.max.bytes": "100000",
        "subscribe": topic,
        "startingOffsets": "earliest",
        "group": group,
        "redisUrl": redis_url,
        "batchTimeBudget": "0",
        "lanes": "1",
    }
    return Stream(spark, options, tmp_path / "checkpoint")


def top(stream: Stream, run: Run) -> str:
    """The output of `top` once the query has read the backlog, in one line."""
    eventually(lambda: stable(stream) == {FIRST + RECORDS}, "the backlog is done")
    _, out, _ = run("top", stream.options["group"], "--once", "--redis", stream.options["redisUrl"])
    return " ".join(out.split())


@pytest.mark.long
def test_a_query_that_waits_for_kafka_says_so_in_log_and_top(
    stream: Stream, kafka: Kafka, run: Run, tmp_path: Path
) -> None:
    limit_client(kafka.bootstrap, stream.options["kafka.client.id"])
    stream.sink = Counting()
    with driver_output(stream.spark, tmp_path / "log") as log, running(stream, kafka):
        seen = top(stream, run)
        assert LINE in seen, seen
        eventually(lambda: LINE in log.read_text(), "Spark's thread has copied the reader's line")


@pytest.mark.long
def test_a_query_that_processes_for_long_says_nothing(stream: Stream, kafka: Kafka, run: Run, tmp_path: Path) -> None:
    stream.sink = Counting(seconds=6.0)
    with driver_output(stream.spark, tmp_path / "log") as log, running(stream, kafka):
        seen = top(stream, run)
    assert "READ %" in seen
    assert LINE not in seen + log.read_text()
