"""Python workers with little memory: the error of a real Spark names the option that limits it."""

import subprocess
import sys
from pathlib import Path

import pytest

from streams import keyed
from topics import Kafka

JOB = """
import sys
from pyspark.sql import SparkSession

bootstrap, topic = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
limited = builder.config("spark.executor.pyspark.memory", "512m").config("spark.executor.cores", "2")
rows = limited.getOrCreate().read.format("coop-kafka").option("kafka.bootstrap.servers", bootstrap)
print(rows.option("subscribe", topic).load().count())
"""


@pytest.mark.long
def test_half_a_gigabyte_for_two_cores_is_too_little_and_the_option_is_named(kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.create_topic("memory", partitions=2)
    kafka.produce(topic, keyed(20))
    job = tmp_path / "job.py"
    job.write_text(JOB)
    command = [sys.executable, str(job), kafka.bootstrap, topic]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0, done.stdout
    assert "ENVIRONMENT_MISMATCH: a Python worker got no more memory or threads" in done.stderr, done.stderr[-3000:]
    assert "its limit is 256 MiB" in done.stderr
    assert "Remedy: raise spark.executor.pyspark.memory" in done.stderr
