"""The log lines of a job that spark-submit runs: each has its form, and INFO has one line for each batch."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_jars import ROOT
from topics import Kafka, Record

JOB = """
import sys
from pyspark.sql import SparkSession
from spark_coop_source import OnError, map_keys


def work(key, records):
    if key == b"bad":
        raise ValueError("no such order")
    return records.arrow.select(["key"])


bootstrap, redis_url, topic, folder = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
options = {"kafka.bootstrap.servers": bootstrap, "redisUrl": redis_url, "subscribe": topic, "group": topic, "slots": 2}
options |= {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 20, "kafka.group.protocol": "consumer"}
options |= map_keys(work, "key binary", on_error=OnError(attempts=1, then="skip"))
rows = spark.readStream.format("coop-kafka").options(**options).load()
writer = rows.writeStream.format("noop").option("checkpointLocation", folder)
query = writer.trigger(availableNow=True).start()
query.awaitTermination()
print("BATCHES", sum(progress.numInputRows > 0 for progress in query.recentProgress))
"""
RECORDS = 60
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO|WARNING|ERROR) ([\w.]+): (.+)")
OF_JAVA = re.compile(
    r"WARNING: (Using incubator modules|A .+ has been called|.+ will be blocked)|NOTE: Picked up JDK_JAVA"
)
OF_PYSPARK = re.compile(r"Traceback \(most recent call last\):\n(?:  .+\n)+BrokenPipeError: .+\n")
"""The end of a Python worker of Spark, whose JVM has ended before it."""
Submit = Callable[..., tuple[list[str], int]]


@pytest.fixture
def submit(kafka: Kafka, redis_url: str, tmp_path: Path) -> Submit:
    """Runs the job by spark-submit with these variables: its stderr, without lines of Java and Spark, and batches."""

    def run(**variables: str) -> tuple[list[str], int]:
        topic = kafka.create_topic("logged")
        kafka.produce(topic, [Record(b"v", b"bad" if i == 30 else b"%d" % (i % 7)) for i in range(RECORDS)])
        job, log = tmp_path / "job.py", f"-Dcoop.log={tmp_path / 'spark.log'}"
        job.write_text(JOB)
        java = f"-Dlog4j2.configurationFile={ROOT / 'conf' / 'log4j2.properties'} {log}"
        words = ["--master", "local[2]", "--driver-java-options", java, "--conf", "spark.ui.enabled=false"]
        words += ["--conf", "spark.ui.showConsoleProgress=false"]
        command: list[str | Path] = [Path(os.environ["SPARK_HOME"], "bin", "spark-submit"), *words, job]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COOP_LOG")}
        done = subprocess.run(
            [*command, kafka.bootstrap, redis_url, topic, str(tmp_path / topic)],
            env=environment | variables,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        lines = OF_PYSPARK.sub("", done.stderr).splitlines()
        batches = int(done.stdout.split("BATCHES ")[1].split()[0])
        return [line for line in lines if line and not OF_JAVA.match(line)], batches

    return run


@pytest.mark.long
def test_without_a_configuration_stderr_has_only_warnings_in_their_form(submit: Submit) -> None:
    lines, _ = submit()
    found = [LINE.fullmatch(line) for line in lines]
    assert [line for line, match in zip(lines, found, strict=True) if match is None] == []
    of_driver = [m for m in found if m and m[2] == "spark_coop_source.driver.stream_reader"]
    of_worker = [m for m in found if m and m[2] == "spark_coop_source.function.decisions"]
    assert [m[3].partition(":")[0] for m in of_driver] == ["option kafka.group.protocol has no effect"]
    assert [m[3].partition(":")[0] for m in of_worker] == ["1 records skipped"]
    assert {m[1] for m in found if m} == {"WARNING"}


@pytest.mark.long
def test_at_info_each_batch_is_one_line_and_json_has_its_numbers(submit: Submit) -> None:
    lines, batches_run = submit(COOP_LOG_LEVEL="INFO", COOP_LOG_FORMAT="json")
    found = [json.loads(line) for line in lines]
    assert {*found[0]} == {"ts", "level", "logger", "msg", "context"}
    batches = [line for line in found if line["logger"] == "coordinator.batches"]
    assert [line["level"] for line in batches] == ["INFO"] * batches_run
    assert batches_run >= 3
    assert sum(int(line["context"]["rows"]) for line in batches) == RECORDS
    group = batches[0]["context"]["group"]
    assert batches[0]["msg"].startswith(f"group {group}, member {batches[0]['context']['member']}: batch of ")
    warned = {line["logger"] for line in found if line["level"] == "WARNING"}
    assert warned == {"spark_coop_source.driver.stream_reader", "spark_coop_source.function.decisions"}
