"""Options without effect and times in seconds: one line each when a query starts, and none for what is in order."""

import json
import logging
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.values.offset_spec import Latest
from coordinator.values.subscription import TopicPartition
from group_services import Group, run, subscribed
from log_lines import own_lines
from pages.option_meanings import MEANINGS
from spark_coop_source.options.notices import OF_GROUPS, OF_STREAMS
from spark_coop_source.options.options import validate
from streams import keyed

ASSIGNED = {"kafka.bootstrap.servers": "h:1", "assign": '{"t":[0]}'}


def notices(options: Mapping[str, str], *, streaming: bool = True) -> tuple[str, ...]:
    return validate(ASSIGNED | dict(options), streaming=streaming).notices


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param(
            {"kafka.session.timeout.ms": "6000"},
            "option kafka.session.timeout.ms has no effect: the stream has no group. Remedy: remove it.",
            id="Kafka's name of an option, by the name that the user wrote",
        ),
        pytest.param(
            {"KAFKA.group.protocol": "x"},
            "option kafka.group.protocol has no effect: tasks join no Kafka group. Remedy: remove it.",
            id="Kafka's group protocol, any case",
        ),
        pytest.param({"groupIdPrefix": "x"}, "option groupIdPrefix has no effect: tasks join", id="a prefix"),
        pytest.param(
            {"startingTimestamp": "1700000000"},
            "option startingTimestamp: 1700000000 is 1970-01-20 16:13:20 UTC, because times are milliseconds. "
            "Remedy: set startingTimestamp to milliseconds, 1700000000000 if this is a time in seconds.",
            id="a start in seconds",
        ),
        pytest.param(
            {"startingOffsetsByTimestamp": '{"t":{"0":1700000000000,"1":1700000000}}'},
            "option startingOffsetsByTimestamp: 1700000000 is 1970",
            id="one of several in seconds",
        ),
    ],
)
def test_a_probable_mistake_is_one_line(options: dict[str, str], words: str) -> None:
    (line,) = notices(options)
    assert words in line


@pytest.mark.parametrize("name", ["endingTimestamp", "endingOffsetsByTimestamp"])
def test_the_end_of_a_batch_in_seconds_is_one_line(name: str) -> None:
    value = '{"t":{"0":1700000000}}' if "By" in name else "1700000000"
    (line,) = notices({name: value}, streaming=False)
    assert line.startswith(f"option {name}: 1700000000 is 1970")


def test_a_batch_reports_that_it_has_no_time_budget_and_a_stream_has_one() -> None:
    (line,) = notices({"Batch.Time.Budget": "5s"}, streaming=False)
    assert line == (
        "option batchTimeBudget has no effect: `spark.read` reads all of its offsets at once. Remedy: remove it."
    )
    assert notices({}, streaming=False) == notices({"batchTimeBudget": "5s"}) == ()


GROUP = {"group": "g", "redisUrl": "redis://h"}
RANGES = {"assign": '{"t":{"0":[[0,4611686018427387903]]}}'}
WITHOUT_EFFECT = [
    ("a batch", {"maxOffsetsPerTrigger": "9"}, False, "`spark.read` reads all of its offsets at once"),
    ("a batch, of members", {"ordering": "none", "redundancy": "2", "assignor": "grouped"}, False, "joins no group"),
    ("a stream without a group", {"sessionTimeout": "9000", "capacity": "3"}, True, "the stream has no group"),
    ("key ranges", GROUP | RANGES | {"assignor": "grouped"}, True, "names the key ranges of this query"),
]


@pytest.mark.parametrize(
    ("options", "streaming", "why"), [row[1:] for row in WITHOUT_EFFECT], ids=[row[0] for row in WITHOUT_EFFECT]
)
def test_each_option_that_the_query_does_not_read_is_one_line(
    options: dict[str, str], streaming: bool, why: str
) -> None:
    unread = options.keys() - GROUP.keys() - {"assign"}
    lines = notices(options, streaming=streaming)
    assert {line.split()[1] for line in lines} == unread
    assert len(lines) == len(unread)
    assert all(f"has no effect: {why}" in line or why in line for line in lines)


def test_the_page_of_options_agrees() -> None:
    """What docs/options.md calls an option of streams has no effect in `spark.read`."""
    where = {field: row.where for rows in MEANINGS.values() for field, row in rows.items()}
    assert {field for field, queries in where.items() if queries == "stream"} == OF_STREAMS | OF_GROUPS | {
        "group",
        "redis_url",
    }


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"startingTimestamp": "978307200000"}, id="the first time that is no mistake"),
        pytest.param({"startingTimestamp": "0"}, id="the beginning of time"),
        pytest.param({"kafka.fetch.min.bytes": "1", "batchTimeBudget": "9s"}, id="options with effect"),
        pytest.param({"startingOffsets": "earliest"}, id="a start"),
    ],
)
def test_correct_options_have_no_line(options: dict[str, str]) -> None:
    assert notices(options) == ()


def test_every_option_without_effect_has_its_own_line() -> None:
    given = {"kafka.group.protocol": "consumer", "kafka.metric.reporters": "1", "groupIdPrefix": "p"}
    assert [line.split()[1] for line in notices(given)] == [
        "kafka.group.protocol",
        "kafka.metric.reporters",
        "groupIdPrefix",
    ]


@pytest.mark.parametrize("given", [pytest.param("startingOffsets", id="given"), pytest.param(None, id="the default")])
def test_a_start_that_does_not_count_is_one_line(
    members: Group, tp: TopicPartition, caplog: pytest.LogCaptureFixture, given: str | None
) -> None:
    members.kafka.produce(tp.topic, keyed(5))
    settings = GroupSettings(members.name, session_ms=500, starting_option=given)
    first = members.service(subscribed(tp), settings=settings)
    with caplog.at_level(logging.INFO, "coordinator.member"):
        first.first_positions()
        first.first_positions()
        assert own_lines(caplog) == [], "the first query of a group uses its start"
        run(members, subscribed(tp))
        again = members.started(subscribed(tp), Latest(), settings=settings)
        again.first_positions()
    lines = own_lines(caplog)
    assert len(lines) == 2, "of each of two more queries"
    for line in lines:
        assert line.startswith(f"group {members.name}: a query without a checkpoint reads on")
        assert "Remedy: " in line
    assert ("; option startingOffsets is not used" in lines[-1]) == (given is not None)


SPARK = """
import json, sys
from pyspark.sql import SparkSession
from spark_coop_source.source import CoopKafkaDataSource
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.dataSource.register(CoopKafkaDataSource)
"""
STREAM = """
rows = spark.readStream.format("coop-kafka").options(**json.loads(sys.argv[1])).load()
to = rows.writeStream.format("noop").option("checkpointLocation", sys.argv[2]).trigger(availableNow=True)
to.start().awaitTermination()
"""
BATCH = """
rows = spark.read.format("coop-kafka").options(**json.loads(sys.argv[1])).load()
print("rows:", rows.count())
"""


def output_of(text: str, options: Mapping[str, str], folder: Path) -> str:
    """All that a driver prints which runs this text."""
    job = folder / "job.py"
    job.write_text(SPARK + text)
    command = [sys.executable, str(job), json.dumps(options), str(folder / "checkpoint")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.long
def test_the_lines_reach_the_output_of_spark_once_a_start(members: Group, tp: TopicPartition, tmp_path: Path) -> None:
    members.kafka.produce(tp.topic, keyed(5))
    run(members, subscribed(tp))
    options = {
        "kafka.bootstrap.servers": members.kafka.bootstrap,
        "subscribe": tp.topic,
        "group": members.name,
        "redisUrl": members.redis_url,
        "startingOffsets": "earliest",
        "kafka.group.protocol": "consumer",
    }
    output = output_of(STREAM, options, tmp_path)
    assert output.count("option startingOffsets is not used") == 1, output
    assert output.count("option kafka.group.protocol has no effect") == 1, output


@pytest.mark.long
def test_the_lines_of_a_batch_reach_the_output_of_spark_once(
    members: Group, tp: TopicPartition, tmp_path: Path
) -> None:
    options = {"kafka.bootstrap.servers": members.kafka.bootstrap, "subscribe": tp.topic, "batchTimeBudget": "5s"}
    output = output_of(BATCH, options, tmp_path)
    assert "rows: 5" in output
    assert output.count("option batchTimeBudget has no effect") == 1, output
