"""State of another schema is refused by name and kept: in Redis by each script, in a checkpoint and in a copy."""

import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from coordinator.errors import CheckpointMismatchError, StateFormatError
from coordinator.progress import mirror
from coordinator.progress.growth import Growth
from coordinator.progress.leader_epochs import Extent
from coordinator.progress.ownership import Owned
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import VERSION, Lane, StreamOffset
from coordinator.redis.events import last_events
from coordinator.redis.group_state import SCHEMA
from coordinator.redis.group_texts import NUMBERS
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller
from coordinator.redis.snapshot import read_group
from coordinator.tools.operations.copies import GroupCopy, backup, restore
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import Topic, TopicPartition
from group_life import VERBS, Life
from store_world import OTHER, TP, StoreServer, World, offset

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
WRITTEN = {
    "group.json": "9d5c2193c8fc768b",
    "groups_at_work.json": "c06dbe2a95ac7870",
    "mirror.json": "5afa1ecd39a45446",
    "offsets.txt": "35061823f20c7f0b",
}
"""The SHA-256 of each file, its first 16 digits."""
LOWER_HALF, UPPER_HALF = cuts(2)
LOWER, UPPER = str(LOWER_HALF), str(UPPER_HALF)
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


def test_the_files_of_schema_1_are_those_that_it_wrote() -> None:
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in SCHEMA_1.iterdir()}
    assert found == WRITTEN


def as_written(world: World, group: str) -> None:
    """All keys of a group that members of schema 1 left in Redis, at the time at which they worked."""
    written = json.loads((SCHEMA_1 / "groups_at_work.json").read_text())
    world.now = written["now_ms"]
    prefix = f"coop:v1:{{{group}}}:"
    for name, forms in written["keys"].items():
        if not name.startswith(prefix):
            continue
        key = GroupKeys(world.group).meta.removesuffix("meta") + name.removeprefix(prefix)
        ((form, content),) = forms.items()
        match form:
            case "hash":
                world.redis.hset(key, mapping=content)
            case "zset":
                world.redis.zadd(key, content)
            case "stream":
                for at, fields in content:
                    world.redis.xadd(key, fields, id=at)
            case _:
                raise AssertionError(name)
    world.redis.hset(GroupKeys(world.group).meta, "run_id", str(world.redis.info("server")["run_id"]))


def test_a_group_at_work_of_schema_1_is_seen(world: World) -> None:
    as_written(world, "orders-to-lake")
    seen = read_group(world.client, world.group)
    assert {name: fields["incarnation"] for name, fields in seen.members.items()} == {"m-1": "i1", "m-2": "i2"}
    assert seen.assignment == {"m-1": {TP: (LOWER_HALF,)}}, "m-2 was drained"
    assert seen.owners[TP] == ((LOWER_HALF, "aa.1", "m-1"), (UPPER_HALF, "aa.2", "m-2"))
    assert seen.segments[TP] == ((LOWER_HALF, 10), (UPPER_HALF, 5))
    assert (seen.stable[TP], seen.ends[TP], seen.standbys) == (5, 20, {"m-2": "standby"})
    assert seen.working["m-2"] == (Slice(TP, UPPER_HALF, OffsetRange(5, 6)),)
    assert {(grown.old, grown.new, grown.late) for grown in seen.growths} == {(2, 4, True), (4, 8, False)}
    events = last_events(world.client, world.group, 100)
    assert [event.kind for event in events][:3] == ["found", "mend", "growth"]


def test_a_group_at_work_of_schema_1_goes_on(world: World) -> None:
    """Also with fields of a later release, which may be ignored."""
    as_written(world, "orders-to-lake")
    for key in (GroupKeys(world.group).meta, GroupKeys(world.group).member("m-1")):
        world.redis.hset(key, "later", "7")
    assert read_group(world.client, world.group).members["m-1"]["later"] == "7"
    one, two, store = world.caller("m-1"), world.caller("m-2"), world.store
    store.members.heartbeat(one)
    assert store.poison.at_work() == {"m-2"}
    assert store.positions.acquire(two, {TP: (UPPER_HALF,)}).value.ownership == {TP: (Owned(UPPER_HALF, "aa.2"),)}
    end = offset(Lane(LOWER_HALF, "aa.1", 10, (OffsetRange(10, 12), OffsetRange(14, 20))))
    assert store.positions.authorize(one, end).value.owned == {TP: (Owned(LOWER_HALF, "aa.1"),)}
    assert world.commit(one, end) == {}
    assert (world.positions()[LOWER], world.ics()) == ("20", {})


def test_a_group_without_order_of_schema_1_goes_on(world: World) -> None:
    as_written(world, "unordered-to-lake")
    (handed,) = read_group(world.client, world.group).handed[TP]
    assert (handed.member, handed.offsets) == ("m-4", OffsetRange(3, 8))
    four = Caller("m-4", "i4", "dd")
    assert world.store.positions.hand_out(four, {TP: 9}, 5, 5).value.slices == {TP: (handed.offsets,)}


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


def test_a_mirror_with_a_field_that_schema_1_does_not_have_is_refused() -> None:
    later = {TP: (5, "coop-kafka v1 reset=0 topic=id-1 later=7 founding=aa")}
    with pytest.raises(StateFormatError, match=r"orders-0"):
        mirror.of_this_schema(later, "orders")


def test_a_field_of_a_later_release_in_an_offset_is_ignored() -> None:
    (*_, line) = (SCHEMA_1 / "offsets.txt").read_text().splitlines()
    body = json.loads(line)
    body["#"]["later"] = 7
    assert StreamOffset.from_json(body) == StreamOffset.from_json(json.loads(line))


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
