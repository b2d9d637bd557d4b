"""Copies with one thing wrong: `restore --execute` refuses each by name, and leaves the sound group byte for byte.

Each row changes a sound copy that `backup` printed of a group with something of everything.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from command_runs import Run
from coordinator.errors import StateFormatError
from coordinator.redis.operator import OperatorVerbs
from coordinator.tools.operations import copies
from coordinator.tools.operations.copies import GroupCopy
from coordinator.values.ranges import WHOLE as WHOLE_RANGE
from rich_groups import live_richly
from store_world import LOWER as LOWER_RANGE
from store_world import UPPER as UPPER_RANGE
from store_world import StoreServer, World

WHOLE, LOWER, UPPER = str(WHOLE_RANGE), str(LOWER_RANGE), str(UPPER_RANGE)
LO, HI = UPPER.split("-")
TOO_LARGE = str(2**63)

Document = dict[str, Any]
Change = Callable[[Document], object]


def with_key(name: str, value: object) -> Change:
    """Another value of a whole key."""
    return lambda document: document["keys"].update({name: value})


def with_field(name: str, field: str, value: object) -> Change:
    """Another value of one field, or one field more."""
    return lambda document: document["keys"].setdefault(name, {}).update({field: value})


def renamed(name: str, field: str, other: str) -> Change:
    """A field by another name, with its value."""
    return lambda document: document["keys"][name].update({other: document["keys"][name].pop(field)})


def without(name: str, field: str = "") -> Change:
    """Without a key, or without one of its fields."""
    return lambda document: document["keys"][name].pop(field) if field else document["keys"].pop(name)


def with_values(**values: object) -> Change:
    """Other values beside the keys."""
    return lambda document: document.update(values)


def case(name: str, change: Change, *words: str) -> Any:
    return pytest.param(change, words, id=name)


COPIES = [
    # The file as a whole.
    case("a list", with_values(keys=[]), "not a JSON object"),
    case("no keys at all", lambda document: document.pop("keys"), "not a JSON object"),
    case("keys that are null", with_values(keys=None), "not a JSON object"),
    case("a newer version", with_values(**{"coop-kafka": 2}), "of version 2"),
    case("a version that is text", with_values(**{"coop-kafka": "1"}), "of version '1'"),
    case("a version that is true, which equals 1", with_values(**{"coop-kafka": True}), "of version True"),
    case("a copy of another group", with_values(group="another"), "of group 'another'"),
    case("a group that is a list", with_values(group=["a"]), "of group a list"),
    case(
        "taken in the year three million", with_values(taken_ms=10**17), "'taken_ms' is 100000000000000000", "year 9999"
    ),
    case("taken before 1970", with_values(taken_ms=-1), "'taken_ms' is -1"),
    case("taken at half a millisecond", with_values(taken_ms=0.5), "'taken_ms' is 0.5"),
    case("taken at a text", with_values(taken_ms="now"), "'taken_ms' is 'now'"),
    case("taken at infinity", with_values(taken_ms=float("inf")), "'taken_ms' is inf"),
    case("taken at true", with_values(taken_ms=True), "'taken_ms' is True"),
    case("taken at no time", lambda document: document.pop("taken_ms"), "'taken_ms' is None"),
    # Which keys there are.
    case("leases of members", with_field("leases", "m-1", "1"), "'leases', which is not a key"),
    case("owners of lanes", with_field("owners:orders:0", WHOLE, "aa.1 m-1"), "'owners:orders:0', which is not a key"),
    case("a key below meta", with_field("meta:more", "a", "b"), "'meta:more', which is not a key"),
    case(
        "segments without a partition",
        with_field("segments:orders", WHOLE, "5"),
        "'segments:orders', which is not a key",
    ),
    case(
        "a partition with a zero in front",
        with_field("segments:orders:00", WHOLE, "5"),
        "'segments:orders:00', which is",
    ),
    case("a topic that Kafka forbids", with_field("stable:or ders", "0", "5"), "'stable:or ders', which is not a key"),
    case("a key without fields", with_key("policy", {}), "'policy' holds no fields"),
    case("a key that is a list", with_key("meta", ["nonce", "aa"]), "'meta' holds no fields"),
    case("a value that is a number", with_field("stable:orders", "0", 5), "'stable:orders': field '0' is not text"),
    case("a value that is null", with_field("meta", "nonce", None), "'meta': field 'nonce' is not text"),
    case("half of a character", with_field("meta", "protocol", "\ud800"), "'meta': field 'protocol' is not text"),
    case("no meta", without("meta"), "lacks 'meta'"),
    case("no topics", without("topics"), "lacks 'topics'"),
    case("a topic without its stable offsets", without("stable:returns"), "lacks 'stable:returns'"),
    case("a partition without its positions", without("segments:returns:0"), "lacks 'segments:returns:0'"),
    case("positions of a partition beside", with_field("segments:orders:9", WHOLE, "5"), "'segments:orders:9' belongs"),
    case("commits of a partition beside", with_field("ics:orders:9", WHOLE, "7-9"), "'ics:orders:9' belongs"),
    case("stable offsets of a topic beside", with_field("stable:other", "0", "5"), "'stable:other' belongs"),
    # Identity and counters.
    case("another schema", with_field("meta", "schema", "2"), "'meta': schema is '2'", "or a newer one"),
    case("no schema", without("meta", "schema"), "schema ''"),
    case("no nonce", without("meta", "nonce"), "'meta': nonce is ''"),
    case("a nonce that is not hex", with_field("meta", "nonce", "xyz"), "'meta': nonce is 'xyz'"),
    case("a founding in capitals", with_field("meta", "founding", "AB"), "'meta': founding is 'AB'"),
    case("a founding of 65 digits", with_field("meta", "founding", "a" * 65), "'meta': founding is 'aaa"),
    case("a nonce of two words", with_field("meta", "nonce", "aa bb"), "'meta': nonce is 'aa bb'"),
    case("a number of partitions that is none", with_field("meta", "partitions orders", "id-1 0"), "topic 'orders'"),
    case("no commit sequence", without("meta", "commit_seq"), "'meta': commit_seq is ''"),
    case("a negative commit sequence", with_field("meta", "commit_seq", "-1"), "'meta': commit_seq is '-1'"),
    case("a commit sequence with zeros in front", with_field("meta", "commit_seq", "007"), "commit_seq is '007'"),
    case("a commit sequence of 19 digits", with_field("meta", "commit_seq", "9" * 19), "'meta': commit_seq is"),
    case("a commit sequence without room", with_field("meta", "commit_seq", "9" * 18), "commit_seq", "must be below"),
    case("no reset epoch", without("meta", "reset_epoch"), "'meta': reset_epoch is ''"),
    case("a counter of lane epochs with a fraction", with_field("meta", "epochs", "1.5"), "'meta': epochs is '1.5'"),
    case("a generation that is a word", with_field("meta", "generation", "first"), "'meta': generation is 'first'"),
    case("joins with a space", with_field("meta", "joins", " 3"), "'meta': joins is ' 3'"),
    case("a recovery with an exponent", with_field("meta", "recovering_until", "1e9"), "recovering_until is '1e9'"),
    case("a turn in Arabic digits", with_field("meta", "computing_until", "٣"), "'meta': computing_until"),
    case("a superscript count", with_field("meta", "duplicate_commits", "²"), "'meta': duplicate_commits"),
    # Topics and what is of their partitions.
    case(
        "a topic without partitions", with_field("topics", "orders", "id-1 0"), "'topics': topic 'orders'", "'id-1 0'"
    ),
    case("a topic of a million partitions", with_field("topics", "orders", "id-1 1000000"), "at most 100000"),
    case("a topic without its id", with_field("topics", "orders", "4"), "'topics': topic 'orders'", "'4'"),
    case(
        "a topic that sets the window's title",
        with_field("topics", "\x1b]0;x\x07", "id-1 1"),
        "lacks 'stable:\\x1b]0;x",
    ),
    case("a topic id of two words", with_field("topics", "orders", "id-1 5 4"), "'topics': topic 'orders'"),
    case("a stable offset that is a word", with_field("stable:orders", "0", "five"), "'stable:orders'", "'five'"),
    case("a stable offset of partition one", with_field("stable:orders", "one", "5"), "'stable:orders'", "'one'"),
    case("a stable offset of partition -1", with_field("stable:orders", "-1", "5"), "'stable:orders'", "'-1'"),
    case("a stable offset above the positions", with_field("stable:orders", "0", "6"), "'stable:orders'", "is 5"),
    case("a look at log ends at no time", with_field("end:orders", "at", "soon"), "'end:orders'", "'soon'"),
    case("a log end that is a word", with_field("end:orders", "0", "far"), "'end:orders'", "'far'"),
    case("a log end beyond 2^63", with_field("end:orders", "0", TOO_LARGE), "'end:orders'", TOO_LARGE),
    case("a log end of a topic to come", with_field("end:later", "0", "far"), "'end:later'", "'far'"),
    case("a leader epoch that is none", with_field("epoch:orders", "0", "3@"), "'epoch:orders'", "orders-0", "'3@'"),
    case("a leader epoch of 32 bits", with_field("epoch:orders", "0", f"{2**31}@9 reset=0 topic=i"), "'epoch:orders'"),
    case("a leader epoch of partition x", with_field("epoch:orders", "x", "3@9 reset=0 topic=i"), "'epoch:orders'"),
    # Positions and individual commits.
    case(
        "a position with zeros in front", with_field("segments:returns:0", WHOLE, "007"), "'segments:returns:0'", "007"
    ),
    case("a position beyond 2^63", with_field("segments:returns:0", WHOLE, TOO_LARGE), "segments:returns:0", TOO_LARGE),
    case("a position in Thai digits", with_field("segments:returns:0", WHOLE, "๗"), "'segments:returns:0': position"),
    case("hashes in capitals", renamed("segments:orders:0", UPPER, UPPER.upper()), UPPER.upper(), "small letters"),
    case("short hashes", with_field("segments:returns:0", "0-7", "5"), "'segments:returns:0'", "'0-7'"),
    case("hashes that are inverted", renamed("segments:orders:0", UPPER, f"{HI}-{LO}"), f"{HI}-{LO}"),
    case("hashes beyond the space", renamed("segments:orders:0", UPPER, f"{LO}-8fffffffffffffff"), "8fffffffffffffff"),
    case("hashes with a sign", renamed("segments:orders:0", UPPER, f"+{LO[1:]}-{HI}"), f"+{LO[1:]}-{HI}"),
    case("positions that overlap", with_field("segments:orders:0", WHOLE, "5"), "'segments:orders:0'", "overlap"),
    case("a hole between positions", without("segments:orders:0", LOWER), "'segments:orders:0'", "leave holes"),
    case("commits without offsets", with_field("ics:orders:0", LOWER, ""), "'ics:orders:0'", "not an offset range"),
    case("commits that are inverted", with_field("ics:orders:0", LOWER, "15-12"), "'ics:orders:0'", "inverted"),
    case("commits that overlap", with_field("ics:orders:0", LOWER, "12-15 14-20"), "'ics:orders:0'", "overlap"),
    case("commits in tabs", with_field("ics:orders:0", LOWER, "12-13\t16-16"), "'ics:orders:0'"),
    case("commits of hashes that overlap", with_field("ics:orders:0", WHOLE, "30-31"), "'ics:orders:0'", "overlap"),
    # What people and members decided.
    case("a policy that is maybe", with_field("policy", "accept.individual.commit", "maybe"), "'policy'", "'maybe'"),
    case("a policy of another version", with_field("policy", "no.such", "true"), "'policy'", "'no.such'"),
    case("a strike without content", with_field("strikes", f"orders 1 {LOWER}", ""), "'strikes': strike 'orders 1"),
    case("a strike at no lane", with_field("strikes", "orders", "struck 1 5-6 9 m-1"), "'strikes': strike 'orders'"),
    case("a strike at partition -1", with_field("strikes", f"orders -1 {LOWER}", "struck 1 5-6 9 m"), "'strikes'"),
    case("a strike in capitals", with_field("strikes", f"orders 1 {UPPER.upper()}", "struck 1 5-6 9 m"), "'strikes'"),
    case("a strike that never was", with_field("strikes", f"orders 1 {LOWER}", "struck 0 5-6 9 m"), "its count is 0"),
    case(
        "a strike of no offsets", with_field("strikes", f"orders 1 {LOWER}", "parked 2 6-6 9 m"), "'strikes'", "empty"
    ),
    case(
        "a strike of another kind", with_field("strikes", f"orders 1 {LOWER}", "freed 1 5-6 9 m"), "'freed 1 5-6 9 m'"
    ),
    case("a strike far ahead", with_field("strikes", f"orders 1 {LOWER}", f"struck 1 5-6 {10**17} m"), "year 9999"),
    case("a topic that shrank", with_field("growth", "orders 4 2", "id-1 1 2"), "'growth'", "'orders 4 2'"),
    case("a growth to a billion", with_field("growth", f"orders 1 {10**9}", "id-1 1 2"), "'growth'", "1000000000"),
    case("a growth that lacks ends", with_field("growth", "orders 2 8", "id-1 1 2 9"), "'growth'", "has 1 ends"),
    case("a growth without its grace", with_field("growth", "orders 2 8", "id-1 1"), "'growth'", "'id-1 1'"),
]

FILES = [
    pytest.param(lambda sound: b"", "not JSON", id="an empty file"),
    pytest.param(lambda sound: sound[: len(sound) // 2], "not JSON", id="a file that was cut off"),
    pytest.param(lambda sound: sound + b"{}", "not JSON", id="a file with more behind its end"),
    pytest.param(lambda sound: b"\xef\xbb\xbf" + sound, "not JSON", id="a file with a byte order mark"),
    pytest.param(lambda sound: sound.replace(b"id-2", b"id-\xfc"), "not UTF-8", id="a file in Latin-1"),
    pytest.param(lambda sound: sound.decode().encode("utf-16"), "not UTF-8", id="a file as PowerShell writes it"),
    pytest.param(lambda sound: b"[" * 100_000, "nested too deeply", id="a list nested 100,000 deep"),
    pytest.param(lambda sound: b'{"keys":' * 100_000, "nested too deeply", id="an object nested 100,000 deep"),
    pytest.param(lambda sound: b'"' + b"a" * 1_000_000 + b'"', "not a JSON object", id="a text of a megabyte"),
    pytest.param(
        lambda sound: sound.replace(b'"taken_ms": ', b'"taken_ms": ' + b"9" * 5_000), "not a copy", id="5,000 digits"
    ),
    pytest.param(lambda sound: sound.replace(b'"policy"', b'"meta"'), "'meta' twice", id="a key that occurs twice"),
    pytest.param(lambda sound: sound.replace(b'"id-2 1"', b'"' + b"i" * 1_000_000 + b'"'), "'returns'", id="a long id"),
]


class SoundGroup:
    """A group without members that nothing here may change, and a copy of it."""

    def __init__(self, world: World) -> None:
        live_richly(world)
        self.world, self.copy = world, copies.backup(world.client, world.group)
        self._bytes = redis.Redis.from_url(world.url)
        self.sound = self.dump()

    def dump(self) -> Mapping[str, object]:
        """All of it in Redis' own form, with when it expires."""
        names = OperatorVerbs.of_group(self.world.client, self.world.group).names()
        return {name: (self._bytes.dump(name), self._bytes.pexpiretime(name)) for name in names}

    def close(self) -> None:
        OperatorVerbs.of_group(self.world.client, self.world.group).delete()
        self._bytes.close()


@pytest.fixture(scope="module")
def group_there(redis_url: str) -> Iterator[SoundGroup]:
    with closing(StoreServer(redis_url)) as server, closing(SoundGroup(World(server, "restore"))) as group:
        yield group


def refused(run: Run, there: SoundGroup, file: Path) -> str:
    """The error of a restore that leaves the group as it was."""
    world = there.world
    code, out, err = run("restore", world.group, str(file), "--execute", "--redis", world.url)
    assert (code, out) == (1, "")
    assert err.startswith("STATE_FORMAT: the copy cannot be restored: ")
    assert "delete" not in err, "the group's own state is sound"
    assert len(err) < 1_000
    assert err.rstrip("\n").isprintable()
    assert there.dump() == there.sound
    return err


@pytest.mark.parametrize(("change", "words"), COPIES)
def test_a_copy_with_one_thing_wrong_is_refused_by_name(
    run: Run, group_there: SoundGroup, tmp_path: Path, change: Change, words: tuple[str, ...]
) -> None:
    document = json.loads(group_there.copy.text)
    change(document)
    (tmp_path / "copy.json").write_text(json.dumps(document))
    err = refused(run, group_there, tmp_path / "copy.json")
    assert all(piece in err for piece in words), err
    assert "Remedy: pass a file that coop-kafka backup wrote" in err or "Remedy: restore it with" in err


@pytest.mark.parametrize(("changed", "words"), FILES)
def test_a_file_that_is_no_copy_is_refused_by_name(
    run: Run, group_there: SoundGroup, tmp_path: Path, changed: Callable[[bytes], bytes], words: str
) -> None:
    (tmp_path / "copy.json").write_bytes(changed(group_there.copy.text.encode()))
    assert words in refused(run, group_there, tmp_path / "copy.json")


def test_a_program_that_makes_its_own_copy_is_refused_too(group_there: SoundGroup) -> None:
    keys = {**group_there.copy.keys, "topics": {"orders": "id-1 0"}}
    with pytest.raises(StateFormatError, match="'topics'"):
        copies.restore(group_there.world.client, replace(group_there.copy, keys=keys))
    assert group_there.dump() == group_there.sound


def test_the_copy_itself_is_sound(group_there: SoundGroup) -> None:
    """Else the rows above would prove nothing."""
    assert GroupCopy.parse(group_there.copy.text, group_there.world.group) == group_there.copy
