"""Where a reset moves positions, on a real broker and a real Redis: to ends, times, offsets, or by a shift."""

import json
from datetime import UTC, datetime

import pytest

from command_runs import Run
from coordinator.tools.cli.operator_commands import _time_ms
from coordinator.values.subscription import TopicPartition
from group_services import Group, subscribed
from group_services import run as run_query
from kafka_logs import T0, THREE_SECONDS, delete_records
from resets import reset
from streams import keyed
from topics import Record

# -- what goes where -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected", "clipped"),
    [
        pytest.param(["--to-earliest"], 2, False, id="the beginning of the log"),
        pytest.param(["--to-latest"], 8, False, id="the end of the log"),
        pytest.param(["--to-offset", "4"], 4, False, id="an offset"),
        pytest.param(["--to-offset", "0"], 2, True, id="an offset before the log is its beginning"),
        pytest.param(["--to-offset", "99"], 8, True, id="an offset behind the log is its end"),
        pytest.param(["--shift-by", "-1"], 4, False, id="one back from the stable offset"),
        pytest.param(["--shift-by", "2"], 7, False, id="two on from the stable offset"),
    ],
)
def test_a_dry_run_shows_the_new_positions_and_changes_nothing(
    run: Run, members: Group, tp: TopicPartition, arguments: list[str], expected: int, clipped: bool
) -> None:
    run_query(members, subscribed(tp))
    members.kafka.produce(tp.topic, keyed(3))
    delete_records(members.kafka, tp, 2)
    before = members.state

    code, out, err = reset(run, members, "--topic", tp.topic, *arguments, "--json")

    assert (code, err) == (0, "")
    move = {"topic": tp.topic, "partition": 0, "before": 5, "after": expected, "by": expected - 5, "clipped": clipped}
    assert json.loads(out) == {"executed": False, "reset": None, "partitions": [move]}
    assert (members.state.segments, members.state.meta) == (before.segments, before.meta)


def test_a_time_means_its_first_record_and_one_after_all_records_the_end(run: Run, members: Group) -> None:
    tp = TopicPartition(members.kafka.create_topic("times"), 0)
    members.kafka.produce(tp.topic, THREE_SECONDS)
    run_query(members, subscribed(tp))
    second = datetime.fromtimestamp((T0 + 1_500) / 1000, UTC)
    without_zone = second.replace(tzinfo=None)
    for time, expected in ((second.isoformat(), 1), (without_zone.isoformat(), 1), ("2999-01-01", 3)):
        code, out, _ = reset(run, members, "--all-topics", "--to-datetime", time, "--json")
        assert (code, json.loads(out)["partitions"][0]["after"]) == (0, expected)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        pytest.param("1970-01-01", 0, id="the first time that Kafka has"),
        pytest.param("1970-01-01T01:00:00.001+01:00", 1, id="a zone and a millisecond"),
        pytest.param("1970-01-01T00:00:00.000001", 1, id="a microsecond: a record before it is not at or after it"),
        pytest.param("9999-12-31T23:59:59.999", 253_402_300_799_999, id="the last time of the calendar"),
    ],
)
def test_a_time_is_the_first_millisecond_at_or_after_it(text: str, ms: int) -> None:
    assert _time_ms(text) == ms


def test_only_the_partitions_that_are_named_move(run: Run, members: Group, tp: TopicPartition) -> None:
    members.kafka.add_partitions(tp.topic, 3)
    run_query(members, subscribed(tp))
    members.kafka.produce(tp.topic, [Record(b"v", partition=p) for p in (0, 1, 1, 2)])
    code, out, _ = reset(run, members, "--topic", f"{tp.topic}:1,2", "--to-latest", "--execute")
    assert code == 0
    head, *rows, end = out.splitlines()
    assert head.split() == ["TOPIC", "PARTITION", "WAS", "IS", "NOW", "BY"], "of what was done"
    assert [row.split()[1:] for row in rows] == [["1", "0", "2", "+2"], ["2", "0", "1", "+1"]]
    assert end == f"Moved 2 partitions: this is reset epoch {members.state.meta['reset_epoch']}."
    assert members.state.stable == {tp: 5, TopicPartition(tp.topic, 1): 2, TopicPartition(tp.topic, 2): 1}
