"""A group is copied to a file and back: an old copy is loaded, later progress is proven (rule: recover-by-proof)."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import kafka_groups
from command_runs import Run
from coordinator.errors import StateFormatError
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.events import last_events
from coordinator.redis.operator import OperatorVerbs
from coordinator.tools.operations.copies import GroupCopy
from coordinator.values.subscription import TopicPartition
from group_services import Group, batch, read, records, subscribed
from group_services import run as run_query
from rich_groups import live_richly
from store_world import World
from streams import keyed

pytestmark = pytest.mark.usefixtures("short_sessions")

WHOLE = "0000000000000000-7fffffffffffffff"
COPY = GroupCopy(
    "orders",
    1_700_000_000_000,
    {
        "meta": {"nonce": "aa", "founding": "aa", "schema": "1", "commit_seq": "7", "reset_epoch": "0", "epochs": "1"},
        "topics": {"t": "id-1 1"},
        "stable:t": {"0": "5"},
        "segments:t:0": {WHOLE: "5"},
        "ics:t:0": {WHOLE: "7-9"},
    },
)


def test_a_copy_comes_back_from_its_text() -> None:
    assert GroupCopy.parse(COPY.text, "orders") == COPY


def changed(keys: dict[str, dict[str, object]] | None = None, **more: Any) -> str:
    """The text of the copy with other entries."""
    document = json.loads(COPY.text)
    return json.dumps(document | more | {"keys": document["keys"] | (keys or {})})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "not JSON", id="nothing"),
        pytest.param(COPY.text[:-20], "not JSON", id="cut off"),
        pytest.param("[1]", "not a JSON object", id="a list"),
        pytest.param("{}", "with 'coop-kafka'", id="other JSON"),
        pytest.param(COPY.text.replace('"coop-kafka": 1', '"coop-kafka": 2'), "version 2", id="of a newer version"),
        pytest.param(changed(group="other"), "of group 'other'", id="of another group"),
        pytest.param(changed({"leases": {"m": "1"}}), "'leases', which is not a key of a copy", id="a foreign key"),
        pytest.param(changed({"policy": {}}), "holds no fields", id="an empty key"),
        pytest.param(changed({"policy": {"a": 1}}), "not text", id="a number"),
        pytest.param(
            changed({"meta": {"nonce": "aa", "founding": "aa", "schema": "1"}}), "commit_seq", id="half a meta"
        ),
        pytest.param(changed({"stable:t": {"1": "5"}}), "segments:t:1", id="no segments"),
        pytest.param(changed({"segments:t:0": {"0-7": "5"}}), "0-7", id="hashes that are none"),
        pytest.param(changed({"segments:t:0": {"0000000000000000-0fffffffffffffff": "5"}}), "holes", id="a hole"),
    ],
)
def test_a_file_that_is_no_sound_copy_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(StateFormatError, match="cannot be restored") as refused:
        GroupCopy.parse(text, "orders")
    assert message in str(refused.value)


def copied(run: Run, members: Group, folder: Path) -> Path:
    code, out, err = run("backup", members.name, "--redis", members.redis_url)
    assert code == 0, err
    (folder / "copy.json").write_text(out)
    return folder / "copy.json"


def restore(run: Run, members: Group, file: Path, *more: str) -> tuple[object, str, str]:
    return run("restore", members.name, str(file), "--redis", members.redis_url, *more)


@pytest.mark.parametrize(("mirrored", "goes_on_at"), [(True, 8), (False, 5)], ids=["with Kafka's group", "without"])
def test_after_an_old_copy_a_query_goes_on_where_something_proves_it_was(
    run: Run, members: Group, tp: TopicPartition, tmp_path: Path, mirrored: bool, goes_on_at: int
) -> None:
    run_query(members, subscribed(tp))
    file = copied(run, members, tmp_path)
    members.kafka.produce(tp.topic, keyed(3))
    run_query(members, subscribed(tp))
    if not mirrored:
        kafka_groups.forget(members.kafka.bootstrap, members.name)
    members.lose_everything()

    code, out, _ = restore(run, members, file)
    assert (code, "Would restore" in out, members.keys) == (0, True, [])
    code, out, _ = restore(run, members, file, "--json")
    copy = GroupCopy.parse(file.read_text(), members.name)
    printed = {"keys": len(copy.keys), "taken_ms": copy.taken_ms, "executed": False}
    assert (code, json.loads(out), members.keys) == (0, printed, [])
    code, out, _ = restore(run, members, file, "--execute")
    assert (code, "Restored" in out, members.state.stable) == (0, True, {tp: 5})

    members.kafka.produce(tp.topic, keyed(2))
    assert records(run_query(members, subscribed(tp))) == read(tp, goes_on_at, 10)
    assert {"restore", "recover"} <= set(members.events)


def test_a_copy_is_taken_of_members_at_work_and_not_loaded_under_them(
    run: Run, members: Group, tp: TopicPartition, tmp_path: Path
) -> None:
    service = members.started(subscribed(tp), session_ms=60_000)
    batch(service, StreamOffset(members.name))
    file, before = copied(run, members, tmp_path), members.state.meta
    code, _, err = restore(run, members, file, "--execute")
    assert (code, err.startswith("GROUP_BUSY")) == (1, True)
    assert members.state.meta == before


def test_there_is_no_copy_of_a_group_that_is_not(run: Run, members: Group) -> None:
    code, _, err = run("backup", members.name, "--redis", members.redis_url)
    assert (code, err.startswith("UNKNOWN_GROUP")) == (1, True)


def test_a_group_with_something_of_everything_is_shown_the_same_after_a_restore(
    run: Run, world: World, tmp_path: Path
) -> None:
    def shown() -> list[str]:
        names = ("describe", "gaps", "policy", "stuck")
        return [run(name, world.group, "--json", "--redis", world.url)[1] for name in names]

    live_richly(world)
    before, copy = shown(), tmp_path / "copy.json"
    assert all(json.loads(text) for text in before)
    copy.write_text(run("backup", world.group, "--redis", world.url)[1])
    operator = OperatorVerbs.of_group(world.client, world.group)
    operator.delete()

    assert run("restore", world.group, str(copy), "--execute", "--redis", world.url)[0] == 0
    assert shown() == before
    again = GroupCopy.parse(run("backup", world.group, "--redis", world.url)[1], world.group)
    was = GroupCopy.parse(copy.read_text(), world.group)
    assert {**again.keys, "meta": {**again.keys["meta"], "run_id": was.keys["meta"]["run_id"]}} == was.keys


def test_an_operator_whose_user_id_has_no_name_restores_a_copy(
    run: Run, members: Group, tp: TopicPartition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs as any user."""
    run_query(members, subscribed(tp))
    file = copied(run, members, tmp_path)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 1_234_567_890)
    code, _, err = restore(run, members, file, "--execute")
    assert (code, err) == (0, "")
    assert last_events(members.client, members.name, 1)[0].why.startswith("by uid-1234567890@")
