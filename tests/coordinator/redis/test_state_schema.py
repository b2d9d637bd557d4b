"""State of another schema is refused by name and kept: in Redis by each script, in a checkpoint and in a copy."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from coordinator.errors import CheckpointMismatchError, StateFormatError
from coordinator.progress import mirror
from coordinator.progress.growth import Growth
from coordinator.progress.leader_epochs import Extent
from coordinator.progress.stream_offset import VERSION, StreamOffset
from coordinator.redis.group_state import SCHEMA
from coordinator.redis.group_texts import NUMBERS
from coordinator.tools.operations.copies import GroupCopy, backup, restore
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Topic, TopicPartition
from group_life import VERBS, Life
from store_world import OTHER, TP, StoreServer, World

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
SCHEMA_1 = Path(__file__).parents[2] / "support" / "schema_1"
"""What version 1 of each form looks like. These files stay as they are: each later version reads them."""
LOWER, UPPER = map(str, cuts(2))
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


def test_a_copy_is_refused_for_each_number_that_scripts_check() -> None:
    (numbers,) = re.findall(r"local NUMBERS = \{(.*?)\}", LUA["damage.lua"], re.DOTALL)
    checked = re.findall(r"'(\w+)'", numbers)
    assert {*checked} <= {*NUMBERS}
    assert len(checked) > 10


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


def test_a_group_of_schema_1_is_read_and_goes_back_as_it_was(world: World) -> None:
    text = (SCHEMA_1 / "group.json").read_text().replace('"group": "orders"', f'"group": "{world.group}"')
    copy = GroupCopy.parse(text, world.group)
    restore(world.client, copy)
    again = dict(backup(world.client, world.group).keys)
    assert again.pop("meta").items() >= {"schema": "1", "founding": "aa", "partitions orders": "id-1 4"}.items()
    assert again == {name: fields for name, fields in copy.keys.items() if name != "meta"}
    assert world.store.positions.stable(["orders", "returns"]) == {
        TP: 5,
        OTHER: 6,
        TopicPartition("orders", 2): 0,
        TopicPartition("orders", 3): 0,
        TopicPartition("returns", 0): 7,
    }
    assert [(str(s.hashes), s.parked) for s in world.store.poison.strikes()] == [(LOWER, False), (UPPER, True)]
    assert [(f.offset, f.parked, f.message) for f in world.store.poison.failing()] == [
        (7, False, "no such order"),
        (7, True, "gone"),
    ]
    assert [g.ends for g in world.store.positions.growths()] == [(20, 30)]


def test_a_mirror_of_schema_1_is_read() -> None:
    texts = json.loads((SCHEMA_1 / "mirror.json").read_text())
    offsets = {
        TopicPartition(topic, int(number)): (offset, text)
        for (topic, _, number), (offset, text) in ((name.rpartition("-"), of) for name, of in texts.items())
    }
    topics = {"orders": Topic("orders", "id-1", (0, 1, 2, 3)), "returns": Topic("returns", "id-2", (0,))}
    ours = mirror.of_founding(mirror.usable(mirror.of_this_schema(offsets, "orders"), topics), "aa")
    assert {str(tp): offset for tp, (offset, _) in ours.items() if offset} == {
        "orders-0": 5,
        "orders-1": 6,
        "returns-0": 7,
        "plain-0": 17,
    }
    assert (mirror.latest_reset(ours), mirror.policies(ours)) == (3, (True, frozenset({"returns"})))
    assert mirror.extents(ours, topics) == {TP: Extent(3, 5)}
    assert mirror.growths(ours, topics) == {
        Growth("orders", "id-1", 2, 4, 1_795_971_983_278, 1_795_971_983_287, late=True)
    }


def test_checkpoints_of_schema_1_are_read() -> None:
    lines = (SCHEMA_1 / "offsets.txt").read_text().splitlines()
    offsets = [StreamOffset.from_json(json.loads(line)) for line in lines]
    assert [json.dumps(offset.to_json(), separators=(",", ":")) for offset in offsets] == lines
    initial, _, full, unordered, alone = offsets
    assert (initial.group, full.member, full.early, full.founding, full.reset) == (None, "m-7f", 1, "aa", 3)
    assert [(str(tp), lane.position, lane.until) for tp, lane in full] == [
        ("orders-0", 120, 241),
        ("orders-0", 241, 241),
        ("returns-0", 7, 9),
    ]
    assert (full.leader_epochs, unordered.by_key, alone.group) == ({TP: 3}, False, None)
