"""State of another schema is refused by name and kept: in Redis by each script, in a checkpoint and in a copy."""

import json
import re
from importlib.resources import files

import pytest

from coordinator.errors import CheckpointMismatchError, StateFormatError
from coordinator.progress.stream_offset import VERSION, StreamOffset
from coordinator.redis.group_state import SCHEMA
from coordinator.tools.operations.copies import GroupCopy
from coordinator.values.ranges import WHOLE
from group_life import VERBS, Life
from store_world import StoreServer

COPY = GroupCopy(
    "g",
    1,
    {
        "meta": {
            "nonce": "aa",
            "founding": "aa",
            "schema": SCHEMA,
            "commit_seq": "7",
            "reset_epoch": "0",
            "epochs": "1",
        },
        "topics": {"orders": "id-1 1"},
        "stable:orders": {"0": "5"},
        "segments:orders:0": {str(WHOLE): "5"},
    },
)
FOLDER = files("coordinator.redis") / "lua"
LUA = {
    script.name: script.read_text()
    for folder in (FOLDER, FOLDER / "shared")
    for script in folder.iterdir()
    if script.is_file()
}


@pytest.fixture(scope="module")
def life(redis_url: str) -> Life:
    """A group that was founded, ran through every script, and was deleted."""
    life = Life(redis_url)
    life.live()
    return life


def test_lua_and_python_know_one_schema_each_in_one_place() -> None:
    assert re.findall(r"local SCHEMA = '(\w+)'", "".join(LUA.values())) == [SCHEMA]
    for name, text in LUA.items():
        assert not re.search(r"schema'?\)? *(?:,|~=|==) *'", text), f"{name} has a number of its own"


@pytest.mark.parametrize("schema", ["0", "2"])
@pytest.mark.parametrize("verb", sorted(VERBS - {"copy"}))
def test_each_script_refuses_another_schema_and_writes_nothing(
    verb: str, schema: str, life: Life, store_server: StoreServer
) -> None:
    keys, args = life.calls[verb]
    redis, meta = store_server.redis, keys[0]
    redis.hset(meta, mapping={"schema": schema, "nonce": "aa", "commit_seq": "1"})
    try:
        before = {key: redis.dump(key) for key in keys}
        with pytest.raises(StateFormatError, match=f"schema '{schema}', this coop-kafka reads schema '{SCHEMA}'"):
            store_server.client.run(verb, keys, args)
        assert {key: redis.dump(key) for key in keys} == before
    finally:
        redis.delete(*keys)


@pytest.mark.parametrize("version", [version for version in range(4) if version != VERSION])
def test_an_offset_of_another_version_is_refused(version: int) -> None:
    body = StreamOffset("g").to_json()
    body["#"]["v"] = version
    with pytest.raises(CheckpointMismatchError, match=f"of version {version}, this coop-kafka reads version {VERSION}"):
        StreamOffset.from_json(body)


def test_a_copy_of_this_version_is_read() -> None:
    assert GroupCopy.parse(COPY.text, COPY.group) == COPY


@pytest.mark.parametrize("number", [0, 2, "1", None])
@pytest.mark.parametrize("of", ["file", "state"])
def test_a_copy_of_another_version_is_refused(of: str, number: object) -> None:
    copy = json.loads(COPY.text)
    if of == "file":
        copy["coop-kafka"] = number
    else:
        copy["keys"]["meta"]["schema"] = number if number != "1" else "3"
    with pytest.raises(StateFormatError, match="the copy cannot be restored"):
        GroupCopy.parse(json.dumps(copy), COPY.group)
