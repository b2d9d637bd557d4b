"""Mistakes of users: a named error of ours at the earliest moment; nothing is lost, and no secret is shown."""

import os
import re
import shutil
import subprocess
import sys
import venv
from contextlib import closing
from pathlib import Path

import pytest
import redis
from pyspark.errors import PySparkException

import servers
from coordinator.values.subscription import TopicPartition
from kafka_logs import delete_records
from own_valkey import OwnValkey
from streams import Stream, eventually, keyed, stable
from topics import Kafka, Record

SECRET = "hunter2"


def refused_at_load(stream: Stream, options: dict[str, str | None]) -> str:
    """The message that `load()` itself raises: before a query exists."""
    merged = {k: v for k, v in (stream.options | options).items() if v is not None}
    with pytest.raises(PySparkException) as error:
        stream.spark.readStream.format("coop-kafka").options(**merged).load()
    return str(error.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"subscrib": "t"}, ["UNKNOWN_OPTION", "subscribe"], id="an unknown option names the nearest"),
        pytest.param({"assign": '{"t":[0]}'}, ["CONFLICTING_OPTIONS", "subscribe", "assign"], id="two subscriptions"),
        pytest.param({"lanes": "0"}, ["INVALID_OPTION", "lanes", "0"], id="no lanes"),
        pytest.param({"lanes": "1000000"}, ["INVALID_OPTION", "lanes", "1000000"], id="a million lanes"),
        pytest.param({"startingOffsets": '{"t":'}, ["INVALID_OPTION", "startingOffsets"], id="malformed JSON"),
        pytest.param(
            {"redisUrl": f"redis://user:{SECRET}@host:port"},
            ["INVALID_OPTION", "redisUrl"],
            id="a url that cannot be parsed",
        ),
        pytest.param({"group": "a\nb"}, ["INVALID_OPTION", "group"], id="a newline in the group's name"),
        pytest.param(
            {"kafka.bootstrap.servers": None}, ["MISSING_OPTION", "kafka.bootstrap.servers"], id="no broker named"
        ),
        pytest.param(
            {"kafka.ssl.truststore.location": "trust.jks", "kafka.security.protocol": "SSL"},
            ["ssl.truststore", "PEM"],
            id="a JKS store",
        ),
    ],
)
def test_a_wrong_option_is_refused_by_load(stream: Stream, options: dict[str, str | None], words: list[str]) -> None:
    message = refused_at_load(stream, options)
    assert [word for word in words if word not in message] == []
    assert SECRET not in message


def failure(stream: Stream, **options: str) -> str:
    """The message of a query that fails."""
    with pytest.raises(PySparkException) as error:
        stream.run(**options)
    assert stream.sink.received == []
    return str(error.value)


def test_a_redis_that_is_not_there_is_named(stream: Stream) -> None:
    (port,) = servers.free_ports(1)
    message = failure(stream, redisUrl=f"redis://:{SECRET}@127.0.0.1:{port}/0")
    assert "REDIS_UNAVAILABLE" in message
    assert f"127.0.0.1:{port}" in message
    assert SECRET not in message


def test_a_redis_whose_password_the_url_lacks_is_named_with_the_remedy(stream: Stream, valkey: OwnValkey) -> None:
    with closing(redis.Redis.from_url(valkey.address)) as admin:
        admin.config_set("requirepass", SECRET)
    message = failure(stream, redisUrl=valkey.address)
    stream.run(redisUrl=valkey.address.replace("redis://", f"redis://:{SECRET}@"))
    wanted = ["REDIS_ACCESS_DENIED", valkey.address, "asks for a password", "redis://:password@host"]
    assert [words for words in wanted if words not in message] == []
    assert SECRET not in message


def test_a_broker_that_is_not_there_is_named(stream: Stream) -> None:
    (port,) = servers.free_ports(1)
    message = failure(
        stream,
        **{"kafka.bootstrap.servers": f"127.0.0.1:{port}", "fetchOffset.numRetries": "0", "kafkaMaxOutage": "1s"},
    )
    assert "KAFKA_UNAVAILABLE" in message
    assert f"127.0.0.1:{port}" in message


def test_an_empty_topic_is_no_error(stream: Stream) -> None:
    stream.run()
    assert stream.sink.received == []


@pytest.mark.parametrize("name", ["Größe \"of\" 'today'", "a:{b}*c?[d]"])
def test_any_group_name_that_people_write_works(kafka: Kafka, stream: Stream, group: str, name: str) -> None:
    kafka.produce(stream.options["subscribe"], keyed(5))
    stream.options["group"] = f"{name} {group}"
    stream.run()
    assert stream.sink.offsets == [0, 1, 2, 3, 4]
    assert stable(stream) == {5}


def test_a_schema_that_is_not_ours_is_refused(stream: Stream) -> None:
    reader = stream.spark.readStream.format("coop-kafka").options(**stream.options).schema("key string, value string")
    line = r"perform \w+: coordinator\.errors\.configuration\.SchemaMismatchError: SCHEMA_MISMATCH: "
    with pytest.raises(PySparkException, match=line) as error:
        reader.load().writeStream.format("noop").option(
            "checkpointLocation", str(stream.checkpoint)
        ).start().awaitTermination()
    assert "UnboundLocalError" not in str(error.value), "Spark's runner adds no fault of its own"


def test_an_error_of_a_running_stream_is_one_line_before_the_frames_of_the_jvm(stream: Stream) -> None:
    query = stream.start(subscribe="no-such-topic")
    eventually(lambda: query.exception() is not None, "the query fails")
    message = str(query.exception())
    assert re.search(
        r"perform \w+: coordinator\.errors\.kafka\.UnknownTopicError: UNKNOWN_TOPIC_OR_PARTITION: ", message
    )
    assert "Traceback" not in message


def test_a_recreated_topic_is_a_data_loss_by_default(kafka: Kafka, stream: Stream) -> None:
    topic = stream.options["subscribe"]
    kafka.produce(topic, keyed(10))
    query = stream.start()
    eventually(lambda: stable(stream) == {10}, "the first batch is confirmed")
    kafka.recreate_topic(topic)
    kafka.produce(topic, keyed(20))
    eventually(lambda: query.exception() is not None, "the query fails")
    message = str(query.exception())
    assert "DATA_LOSS" in message or "UNKNOWN_TOPIC" in message, message
    with pytest.raises(PySparkException, match=r"DATA_LOSS.*failOnDataLoss"):
        stream.run()
    assert len(stream.sink.received) == 10


def test_records_that_aged_out_are_a_data_loss_by_default_and_skipped_on_request(kafka: Kafka, stream: Stream) -> None:
    topic = stream.options["subscribe"]
    kafka.produce(topic, keyed(10))
    stream.run()
    kafka.produce(topic, keyed(10, first=10))
    delete_records(kafka, TopicPartition(topic, 0), 15)
    with pytest.raises(PySparkException, match=r"DATA_LOSS.*10-14"):
        stream.run()
    stream.run(failOnDataLoss="false")
    assert stream.sink.offsets == [*range(10), *range(15, 20)]


# -- the Python of Spark's processes -----------------------------------------------------------

JOB = """
import sys
from pyspark.sql import SparkSession
from spark_coop_source.source import CoopKafkaDataSource
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.dataSource.register(CoopKafkaDataSource)
options = {"kafka.bootstrap.servers": sys.argv[1], "subscribe": sys.argv[2]}
print("COUNT", spark.read.format("coop-kafka").options(**options).load().count())
"""


@pytest.mark.long
def test_a_worker_without_our_packages_fails_with_the_remedy(kafka: Kafka, tmp_path: Path) -> None:
    """Workers run PYSPARK_PYTHON: here one that has pyspark and this project, and nothing that it needs."""
    topic = kafka.create_topic("worker")
    kafka.produce(topic, [Record(b"v", b"k")])
    bare = tmp_path / "bare"
    venv.create(bare, symlinks=True)
    wanted = (
        "pyspark",
        "py4j",
        "pyarrow",
        "numpy",
        "pandas",
        "dateutil",
        "six",
        "pytz",
        "tzdata",
        "coordinator",
        "spark_coop_source",
    )
    packages = next((bare / "lib").glob("python*")) / "site-packages"
    installed = Path(pytest.__file__).parents[1]
    for path in installed.iterdir():
        if path.name.split(".")[0].split("-")[0] in wanted:
            (packages / path.name).symlink_to(path)
    job = tmp_path / "job.py"
    job.write_text(JOB)
    done = subprocess.run(
        [sys.executable, job, kafka.bootstrap, topic],
        env=os.environ | {"PYSPARK_PYTHON": str(bare / "bin" / "python")},
        capture_output=True,
        text=True,
        timeout=150,
        cwd=tmp_path,
        check=False,
    )
    assert "COUNT" not in done.stdout
    output = done.stdout + done.stderr
    assert "ENVIRONMENT_MISMATCH" in output
    assert "PYSPARK_PYTHON" in output


def test_a_checkpoint_has_only_a_half_written_file__a_new_one_reads_everything(kafka: Kafka, stream: Stream) -> None:
    """A kill of the driver leaves this; docs/troubleshooting.md names Spark's error."""
    (topic,) = stream.options["subscribe"].split(",")
    kafka.produce(topic, keyed(20))
    half_written = stream.checkpoint / "offsets" / ".0.7d0f4c1e.tmp"
    half_written.parent.mkdir(parents=True)
    half_written.touch()
    with pytest.raises(PySparkException, match="STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY"):
        stream.run()
    shutil.rmtree(stream.checkpoint)
    stream.run()
    assert len(stream.sink.received) == 20
