"""Jobs that acknowledge their rows one by one: nothing of it is read again, and holes leave no gap."""

import json
import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row

import processes
from broker_jars import ROOT
from coordinator.commits.group_commits import GroupCommits
from coordinator.errors import UnknownGroupError
from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import GroupState
from coordinator.redis.snapshot import read_group
from coordinator.values.subscription import TopicPartition
from drivers import points
from job import SparkSubmit
from streams import Stream, eventually, stable
from topics import Kafka, Record

JOB = ROOT / "tests" / "support" / "acknowledging_job.py"
COLUMNS = "key,value,topic,partition,offset,acknowledgement"
SESSION_MS = 5_000


@dataclass
class Application:
    """A driver of the job, in a folder with its checkpoint and its output."""

    folder: Path
    options: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        points.disarm(self.folder)
        path = os.pathsep.join(map(str, (ROOT / "scripts" / "lib", ROOT / "tests" / "support")))
        submit = SparkSubmit(
            JOB, [str(self.folder), json.dumps(self.options)], self.folder, self.folder / "driver.log", 2
        )
        self.process = submit.start({points.FOLDER: str(self.folder), "PYTHONPATH": path})
        self.started.append(self.process)

    @property
    def offsets(self) -> list[int]:
        """The offsets of the rows that were worked on, in that order."""
        output = self.folder / "output"
        return [int(line) for line in output.read_text().split()] if output.exists() else []

    def runs(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, processes.tail(self.folder / "driver.log")
        return True

    def kill(self) -> None:
        """SIGKILL for all of its processes."""
        assert self.process is not None
        processes.kill(self.process)

    def end(self) -> None:
        for process in self.started:
            processes.stop(process)


Applications = Callable[..., Application]


@pytest.fixture
def topic(kafka: Kafka) -> str:
    """40 records of 9 keys; behind every ten of them lie an aborted record and its marker."""
    name = kafka.create_topic("rows")
    for first in range(0, 40, 10):
        kafka.produce(name, [Record(b"%d" % i, b"key-%d" % (i % 9)) for i in range(first, first + 10)])
        kafka.produce_aborted(name, [Record(b"aborted", b"key-1")])
    return name


EVERY = [12 * ten + i for ten in range(4) for i in range(10)]  # the offsets of the records
END = 46  # the offset after the last record


@pytest.fixture
def applications(kafka: Kafka, redis_url: str, topic: str, tmp_path: Path) -> Iterator[Applications]:
    """Applications of one group, by name, with more options."""
    made, group = dict[str, Application](), f"rows-{uuid.uuid4().hex[:8]}"

    def application(name: str, **more: str) -> Application:
        options = {
            "kafka.bootstrap.servers": kafka.bootstrap,
            "kafka.isolation.level": "read_committed",
            "subscribe": topic,
            "startingOffsets": "earliest",
            "columns": COLUMNS,
            "group": group,
            "redisUrl": redis_url,
            "slots": "2",
            "sessionTimeout": str(SESSION_MS),
            "heartbeatInterval": "500",
            **more,
        }
        return made.setdefault(name, Application(tmp_path / name, options))

    yield application
    for each in made.values():
        each.end()


def state(of: Application) -> GroupState | None:
    with closing(RedisClient(of.options["redisUrl"])) as client:
        try:
            return read_group(client, of.options["group"])
        except UnknownGroupError:
            return None


def killed_half_way(of: Application) -> list[int]:
    """The offsets that it acknowledged before the SIGKILL."""
    of.folder.mkdir()
    of.start()
    points.arm(of.folder, points.BEFORE_SINK)
    eventually(lambda: of.runs() and points.reached(of.folder), "half of the batch is acknowledged")
    of.kill()
    done = of.offsets
    assert len(done) == len(EVERY) // 2
    return done


def all_is_done(of: Application, topic: str) -> None:
    def done() -> bool:
        now = state(of)
        return of.runs() and now is not None and now.stable.get(TopicPartition(topic, 0)) in (END, END + 2)

    eventually(done, "every record is done")
    now = state(of)
    assert now is not None
    assert not now.ics, "no gap is left"


@pytest.mark.long
def test_the_next_life_replays_only_rows_without_an_acknowledgement(applications: Applications, topic: str) -> None:
    driver = applications("a", replayAcknowledged="false")
    done = killed_half_way(driver)
    driver.start()
    all_is_done(driver, topic)
    assert sorted(driver.offsets[len(done) :]) == sorted(set(EVERY) - set(done))
    assert "a replay leaves out records that were acknowledged" in (driver.folder / "driver.log").read_text()


@pytest.mark.long
def test_another_application_reads_only_rows_without_an_acknowledgement(applications: Applications, topic: str) -> None:
    done, heir = killed_half_way(applications("a")), applications("b")
    heir.start()
    all_is_done(heir, topic)
    assert sorted(heir.offsets) == sorted(set(EVERY) - set(done))


def test_several_tasks_acknowledge_records_99_110_and_121_and_the_stable_offset_is_122_before_the_batch_ends(
    stream: Stream, kafka: Kafka
) -> None:
    """Aborted records and markers lie between them. Below them, each task has records."""
    url, group, seen, tasks = stream.options["redisUrl"], stream.options["group"], list[set[int]](), list[int]()
    topic = kafka.create_topic("holes")
    kafka.produce(topic, [Record(b"", b"key-%d" % (i % 9)) for i in range(100)])
    for key in (b"key-1", b"key-2"):
        kafka.produce_aborted(topic, [Record(b"aborted", b"key-%d" % i) for i in range(9)])
        kafka.produce(topic, [Record(b"", key)])

    def acknowledge(rows: Iterator[Row]) -> None:
        with GroupCommits.of_group(url, group) as commits:
            for row in rows:
                commits.acknowledge(row.acknowledgement)

    def work(rows: DataFrame, batch: int) -> None:
        tasks.append(rows.rdd.getNumPartitions())
        rows.select("acknowledgement").foreachPartition(acknowledge)
        seen.append(stable(stream))

    more = {"subscribe": topic, "columns": COLUMNS, "kafka.isolation.level": "read_committed"}
    query = (
        stream.spark.readStream.format("coop-kafka")
        .options(**(stream.options | more))
        .load()
        .writeStream.foreachBatch(work)
        .option("checkpointLocation", str(stream.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(180)
    finally:
        query.stop()
    assert tasks[0] > 1
    assert seen[0] == {122}
