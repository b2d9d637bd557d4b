"""The command `audit`: its verdict, tables and JSON, its exit codes and errors."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from command_runs import Run
from coordinator.values.subscription import TopicPartition
from group_services import Group, subscribed
from group_services import run as run_query

COUNTS = ["lost", "repeated", "out_of_order", "dead_lettered", "waiting", "parked", "deferred", "ahead", "gone"]


@pytest.fixture
def done(members: Group, tp: TopicPartition) -> TopicPartition:
    """The partition of a topic whose five records the group has done."""
    run_query(members, subscribed(tp))
    return tp


def audit(run: Run, members: Group, topic: str, sink: str, *arguments: str) -> tuple[object, str, str]:
    place = ("--redis", members.redis_url, "--bootstrap-server", members.kafka.bootstrap)
    return run("audit", members.name, *place, "--topic", topic, "--sink", sink, *arguments)


def write(folder: Path, offsets: Sequence[int], batch: str = "batch") -> str:
    parquet.write_table(
        pa.table({"partition": [0] * len(offsets), "offset": offsets, batch: [0] * len(offsets)}),
        folder / "part-00000-x.parquet",
    )
    return f"parquet:{folder}"


def test_a_good_sink(run: Run, members: Group, done: TopicPartition, tmp_path: Path) -> None:
    code, out, err = audit(run, members, done.topic, write(tmp_path, range(5)))
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == "5 records done, each exactly once in the sink: 0 lost, 0 repeated, 0 out of order."
    assert lines[2].split() == [done.topic, "0", "0", "5", "5", "5", *["0"] * len(COUNTS)]
    assert len(lines) == 3


def test_faults_are_named_and_the_exit_code_is_3(
    run: Run, members: Group, done: TopicPartition, tmp_path: Path
) -> None:
    code, out, err = audit(run, members, done.topic, write(tmp_path, [0, 1, 4, 4]))
    lines = [line.split() for line in out.splitlines()]
    assert (code, err) == (3, "")
    assert " ".join(lines[0]) == "5 records done: 2 lost, 1 repeated, 0 out of order."
    assert lines[-3] == [done.topic, "0", "2-3", "lost", "the", "sink", "has", "no", "record", "of", "its", "key"]
    assert lines[-2] == [done.topic, "0", "4", "repeated", "0", "2", "rows"]
    assert " ".join(lines[-1]).startswith("Something is lost, and no member names a dead-letter topic")


def test_json_has_every_count_and_fault(run: Run, members: Group, done: TopicPartition, tmp_path: Path) -> None:
    code, out, _ = audit(run, members, done.topic, write(tmp_path, [0, 1, 2, 3, 3]), "--json")
    found = json.loads(out)
    (partition,) = found["partitions"]
    assert (code, found["good"], found["group"], found["sink"]) == (3, False, members.name, f"parquet:{tmp_path}")
    assert [partition[count] for count in COUNTS] == [1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert partition["faults"][1] == {"kind": "repeated", "offsets": [3, 3], "batches": ["0"], "why": "2 rows"}
    assert partition["start"] == 0


def test_columns_partitions_and_the_first_offset_are_chosen(
    run: Run, members: Group, done: TopicPartition, tmp_path: Path
) -> None:
    sink = write(tmp_path, [2, 3, 4], "run")
    code, out, _ = audit(run, members, f"{done.topic}:0", sink, "--column", "batch=run", "--from-offset", "2")
    assert (code, out.splitlines()[0].split(",")[0]) == (0, "3 records done")


def test_without_batches_it_says_that_the_order_is_not_known(
    run: Run, members: Group, done: TopicPartition, tmp_path: Path
) -> None:
    code, out, _ = audit(run, members, done.topic, write(tmp_path, range(5), "run"))
    assert code == 0
    assert out.splitlines()[-1] == "The order is not checked in full: the sink names no batches."


def test_names_of_a_sink_do_not_reach_the_terminal_as_they_are(
    run: Run, members: Group, done: TopicPartition, tmp_path: Path
) -> None:
    for query in ("query=a%1B[31m", "query=\x1b[31m"):
        folder = tmp_path / query / "batch=0"
        folder.mkdir(parents=True)
        parquet.write_table(pa.table({"partition": [0] * 5, "offset": range(5)}), folder / "x.parquet")
    code, out, err = audit(run, members, done.topic, f"parquet:{tmp_path}")
    assert (code, err) == (3, "")
    assert "\x1b" not in out
    assert r"a\x1b[31m/0" in out


ERRORS = {
    "no topic of the group": (["--topic", "nowhere", "--sink", "parquet:SINK"], 1, "UNKNOWN_TOPIC_OR_PARTITION"),
    "no partition of the group": (["--topic", "TOPIC:7", "--sink", "parquet:SINK"], 1, "UNKNOWN_TOPIC_OR_PARTITION"),
    "no sink there": (["--topic", "TOPIC", "--sink", "parquet:SINK/x"], 1, "SINK_UNREADABLE"),
    "no format": (["--topic", "TOPIC", "--sink", "SINK"], 2, "INVALID_OPTION"),
    "no sink": (["--topic", "TOPIC"], 2, "WRONG_USAGE"),
    "half a column": (["--topic", "TOPIC", "--sink", "parquet:SINK", "--column", "offset"], 2, "WRONG_USAGE"),
    "no such column": (["--topic", "TOPIC", "--sink", "parquet:SINK", "--column", "key=k"], 2, "INVALID_OPTION"),
}


@pytest.mark.parametrize(("arguments", "code", "name"), ERRORS.values(), ids=ERRORS)
def test_an_error_is_one_line(
    run: Run, members: Group, done: TopicPartition, tmp_path: Path, arguments: list[str], code: int, name: str
) -> None:
    words = [word.replace("TOPIC", done.topic).replace("SINK", str(tmp_path)) for word in arguments]
    place = ("--redis", members.redis_url, "--bootstrap-server", members.kafka.bootstrap)
    ended, out, err = run("audit", members.name, *place, *words)
    assert (ended, out, err.count("\n")) == (code, "", 1)
    assert err.startswith(f"{name}: ")
