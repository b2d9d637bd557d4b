"""The command `redrive`: a dry run by default, its report, its JSON, its errors."""

import json
from dataclasses import replace

import pytest

from command_runs import Run
from coordinator.progress.failing import FailingRecord
from coordinator.redis.events import last_events
from coordinator.redis.group_state import DEAD_LETTERS
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller, Joining
from coordinator.tools.cli import redrive_command
from coordinator.values.dead_letter import DeadLetter, SourceRecord
from coordinator.values.key_hash import hash_key
from coordinator.values.subscription import TopicPartition
from group_services import Group, subscribed
from group_services import run as run_query
from topics import Record
from written_records import consumed


@pytest.fixture
def dead(members: Group, tp: TopicPartition) -> str:
    """A dead-letter topic of a group that reads `tp`, with records 1 to 3: a record of the key of 1 came after it."""
    run_query(members, subscribed(tp))
    topic = members.kafka.create_topic("dead")
    keys = [record.key for record in consumed(members.kafka.bootstrap, tp.topic)]
    letters = [
        DeadLetter(SourceRecord(tp, offset, -1, keys[offset], b"dead %d" % offset), members.name, "E", "", 1)
        for offset in (1, 2, 3)
    ]
    records = [Record(x.record.value, x.record.key, 0, x.headers) for x in letters]  # type: ignore[arg-type]
    members.kafka.produce(topic, records)
    members.kafka.produce(tp.topic, [Record(b"later", keys[1])])
    return topic


def redrive(run: Run, members: Group, *arguments: str) -> tuple[object, str, str]:
    place = ("--redis", members.redis_url, "--bootstrap-server", members.kafka.bootstrap)
    return run("redrive", members.name, *place, *arguments)


def test_without_execute_it_reports_and_writes_nothing(run: Run, members: Group, tp: TopicPartition, dead: str) -> None:
    code, out, err = redrive(run, members, "--topic", tp.topic, "--from", dead)
    (late,) = [r for r in consumed(members.kafka.bootstrap, tp.topic) if r.value == b"later"]
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == f"Would redrive 3 records of 3 keys from '{dead}' to '{tp.topic}'."
    assert lines[1].startswith("1 record of 1 key would come out of order")
    assert lines[3].split() == [tp.topic, "0", f"{hash_key(late.key):016x}", "1", "1", "1", "1"]
    assert lines[4] == "Nothing was changed. Add --execute to make the change."


def test_with_execute_it_redrives_once(run: Run, members: Group, tp: TopicPartition, dead: str) -> None:
    place = ("--topic", tp.topic, "--from", dead, "--execute")
    code, out, err = redrive(run, members, *place)
    assert (code, out, err) == (0, f"Redrove 3 records of 3 keys from '{dead}' to '{tp.topic}'.\n", "")
    assert redrive(run, members, *place)[1] == f"Redrove 0 records of 0 keys from '{dead}' to '{tp.topic}'.\n"
    written = [r.value for r in consumed(members.kafka.bootstrap, tp.topic) if r.value.startswith(b"dead")]
    assert written == [b"dead 1", b"dead 2", b"dead 3"]
    events = [e.why for e in last_events(members.client, members.name, 100) if e.kind == "redrive"]
    assert events == [f"3 records from '{dead}' to '{tp.topic}'"]


def test_one_key_in_order(run: Run, members: Group, tp: TopicPartition, dead: str) -> None:
    (key, *_) = [r.key for r in consumed(members.kafka.bootstrap, dead)[1:]]
    place = ("--topic", tp.topic, "--from", dead)
    for argument in (("--key", key.decode()), ("--key", key.hex(), "--hex")):
        _, out, _ = redrive(run, members, *place, *argument)
        assert out.splitlines()[:2] == [
            f"Would redrive 1 record of 1 key from '{dead}' to '{tp.topic}'.",
            "Every key would stay in order: the topic has no later record of them.",
        ]


def test_json_has_the_same_numbers(run: Run, members: Group, tp: TopicPartition, dead: str) -> None:
    members.kafka.produce(dead, [Record(b"plain")])
    place = ("--topic", tp.topic, "--from", dead, "--json")
    found = json.loads(redrive(run, members, *place)[1])
    assert found["late_keys"][0]["first_offset"] == 1
    assert {name: value for name, value in found.items() if name != "late_keys"} == {
        "executed": False,
        "from": dead,
        "to": tp.topic,
        "parked": 0,
        "records": 3,
        "keys": 3,
        "out_of_order": 1,
        "others": 0,
        "strange": 1,
    }
    assert json.loads(redrive(run, members, *place, "--execute")[1])["executed"] is True


def test_what_is_left_out_is_counted(run: Run, members: Group, tp: TopicPartition, dead: str) -> None:
    members.kafka.produce(dead, [Record(b"plain")])
    _, out, _ = redrive(run, members, "--topic", "other", "--from", dead)
    assert out == ""  # a topic that Kafka lacks is an error
    other = members.kafka.create_topic("other")
    _, out, _ = redrive(run, members, "--topic", other, "--from", dead)
    assert out.splitlines()[:2] == [
        f"Would redrive 0 records of 0 keys from '{dead}' to '{other}'.",
        "Left out: 3 dead letters of other groups or topics, and 1 other record.",
    ]


def test_parked_keys_of_the_topic_are_counted_and_left_to_release(
    run: Run, members: Group, tp: TopicPartition, dead: str
) -> None:
    other = TopicPartition("other", 0)
    parked = (FailingRecord(place, 5, 1, 3, 0, parked) for place, parked in ((tp, True), (other, True), (tp, False)))
    for number, record in enumerate(parked):
        members.redis.hset(GroupKeys(members.name).failing, replace(record, key_hash=number).field, record.text)
    place = ("--topic", tp.topic, "--from", dead)
    _, out, _ = redrive(run, members, *place)
    assert f"1 key of '{tp.topic}' is parked. They are not dead letters: coop-kafka release reads them in order." in out
    assert json.loads(redrive(run, members, *place, "--json")[1])["parked"] == 1


def test_progress_is_on_stderr(
    run: Run, members: Group, tp: TopicPartition, dead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redrive_command, "PROGRESS_S", 0.0)
    _, _, err = redrive(run, members, "--topic", tp.topic, "--from", dead)
    assert err.splitlines()[0] == f"reading {dead}: 1 record so far"
    assert f"reading {tp.topic}: 4 records so far" in err.splitlines()


def test_the_dead_letter_topic_of_the_members_is_the_default(
    run: Run, members: Group, tp: TopicPartition, dead: str
) -> None:
    code, out, err = redrive(run, members, "--topic", tp.topic)
    assert (code, out) == (2, "")
    assert err.startswith("MISSING_OPTION: the members of group")
    assert "name no dead-letter topic" in err
    assert "pass one by --from" in err
    members.store.members.join(Caller("m-1", "i1"), "", Joining({DEAD_LETTERS: dead, "topics": tp.topic}))
    assert f"from '{dead}'" in redrive(run, members, "--topic", tp.topic)[1]


ERRORS = {
    "a topic that Kafka lacks": (["--topic", "orders-nowhere", "--from", "DEAD"], 1, "UNKNOWN_TOPIC_OR_PARTITION"),
    "a dead-letter topic that Kafka lacks": (
        ["--topic", "TOPIC", "--from", "nowhere"],
        1,
        "UNKNOWN_TOPIC_OR_PARTITION",
    ),
    "no topic": (["--from", "DEAD"], 2, "WRONG_USAGE"),
    "a key of half a byte": (["--topic", "TOPIC", "--from", "DEAD", "--key", "abc", "--hex"], 2, "INVALID_OPTION"),
}


@pytest.mark.parametrize(("arguments", "code", "name"), ERRORS.values(), ids=ERRORS)
def test_an_error_is_one_line_and_nothing_is_written(
    run: Run, members: Group, tp: TopicPartition, dead: str, arguments: list[str], code: int, name: str
) -> None:
    words = [{"TOPIC": tp.topic, "DEAD": dead}.get(word, word) for word in arguments]
    ended, out, err = redrive(run, members, *words, "--execute")
    assert (ended, out, err.count("\n")) == (code, "", 1)
    assert err.startswith(f"{name}: ")
    assert len(consumed(members.kafka.bootstrap, tp.topic)) == 6
