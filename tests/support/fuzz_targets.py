"""Decoders and parsers for `scripts/fuzz`: of any bytes, each either makes something sound or raises an error of ours.

A target's check tells which. It raises `AssertionError` for a result that is not sound: other records than kafka-python
reads, a part of the input that was left out, a form that reads back as something else. Any other exception is a crash.
"""

import json
import struct
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import zstandard

import servers
from bombs import COMPRESS, resealed
from coordinator.assignment.assignment_text import ranges_of, ranges_text
from coordinator.commits import commit_api
from coordinator.errors import CheckpointMismatchError, CoopKafkaError, StateFormatError
from coordinator.plan.cost.telemetry import SliceCost
from coordinator.plan.poison import Strike
from coordinator.progress import acknowledgement, ends, leader_epochs, mirror
from coordinator.progress.failing import ERROR_CHARACTERS, MESSAGE_CHARACTERS, FailingRecord
from coordinator.progress.growth import Growth
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.lane_lines import BatchLine, LaneLine
from coordinator.tools.moving import parallel_consumer, share_group, spark_checkpoint
from coordinator.tools.moving.progress import DoneOffsets
from coordinator.tools.operations.copies import GroupCopy
from coordinator.tools.operations.redrive_plan import RedriveProgress
from coordinator.values.ranges import OFFSET_MAX, OffsetRange, is_number, union
from coordinator.values.subscription import Topic, TopicPartition
from read_wire import MIB, RECORDS, compared, settings_only
from rich_groups import live_on_with
from spark_coop_source.fetch.raw_batches import ATTRIBUTES_AT, HEAD, MAGIC_AT
from spark_coop_source.telemetry import questions, report
from store_world import StoreServer, World
from wire_batches import CODECS, batch

SCHEMA_1 = Path(__file__).with_name("schema_1")
TP = TopicPartition("orders", 0)
TOPICS = {"orders": Topic("orders", "id-1", (0, 1, 2, 3)), "returns": Topic("returns", "id-2", (0,))}

Check = Callable[[bytes], bool]
"""Whether the input was taken, and not refused by name."""


class Target(NamedTuple):
    """What is fuzzed."""

    what: str
    seeds: Callable[[], Iterable[bytes]]
    opened: Callable[[], AbstractContextManager[Check]]


def pure(check: Check) -> Callable[[], AbstractContextManager[Check]]:
    """A check that needs nothing around it."""

    @contextmanager
    def opened() -> Iterator[Check]:
        yield check

    return opened


# -- record batches ----------------------------------------------------------------------------

_SMALL_CHUNKS, _COMPRESS, _CODECS = 0x40, 0x80, list(CODECS)
"""In the first byte of an input, beside a codec: small chunks; that the rest of the input is to be compressed."""


def _batch_seeds() -> Iterator[bytes]:
    plain = batch(RECORDS, 100)
    for number, codec in enumerate(_CODECS):
        yield bytes([number]) + batch(RECORDS[:12], 100, codec=codec)
        yield bytes([number | _COMPRESS | _SMALL_CHUNKS]) + plain[:700]


def _wire(data: bytes) -> bytes:
    """The batch of an input, of format v2 with offsets that can be read, as brokers send them: length and crc fit."""
    flags, head, payload = data[0], bytearray(data[1 : 1 + HEAD.size].ljust(HEAD.size, b"\0")), data[1 + HEAD.size :]
    head[0], head[MAGIC_AT] = 0, 2
    if flags & _COMPRESS:
        codec = _CODECS[flags % len(_CODECS)]
        head[ATTRIBUTES_AT + 1] = head[ATTRIBUTES_AT + 1] & ~7 | CODECS[codec]
        payload = COMPRESS[codec]([payload])
    return resealed(bytes(head) + payload)


@contextmanager
def _batches() -> Iterator[Check]:
    with settings_only() as consumer:
        yield lambda data: bool(data) and compared(consumer, _wire(data), 100 if data[0] & _SMALL_CHUNKS else 4 * MIB)


# -- checkpoints -------------------------------------------------------------------------------


def _json(data: bytes) -> object:
    """What Spark gives to the source; None if it is no JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _offset(data: bytes) -> bool:
    if not isinstance(body := _json(data), dict):
        return False
    try:
        read = StreamOffset.from_json(body)
    except CheckpointMismatchError:
        return False
    again = read.to_json()
    assert StreamOffset.from_json(again) == read
    left_out = {t: of for t, of in body.items() if of and again.get(t) != of and t != "#" and any(of.values())}
    assert not left_out, left_out
    return True


def _offset_seeds() -> list[bytes]:
    return (SCHEMA_1 / "offsets.txt").read_bytes().splitlines()


@contextmanager
def _checkpoints() -> Iterator[Check]:
    with tempfile.TemporaryDirectory(prefix="coop-kafka-fuzz-") as name:
        folder = Path(name)
        for kind in ("commits", "offsets"):
            (folder / kind).mkdir()
        (folder / "commits" / "3").write_text("v1\n{}")

        def check(data: bytes) -> bool:
            (folder / "offsets" / "3").write_bytes(data)
            try:
                done, _ = spark_checkpoint.done(folder)
            except CoopKafkaError:
                return False
            _sound(done)
            return bool(done)

        yield check


# -- Redis -------------------------------------------------------------------------------------


def _lines_of(keys: Mapping[str, Mapping[str, str]]) -> bytes:
    """A copy as lines: key, field and value with tabs between them."""
    return "\n".join(f"{k}\t{f}\t{v}" for k, fields in keys.items() for f, v in fields.items()).encode()


def _copy(data: bytes, group: str) -> GroupCopy:
    keys: dict[str, dict[str, str]] = {}
    for line in data.decode("utf-8", "replace").split("\n"):
        name, _, rest = line.partition("\t")
        field, _, value = rest.partition("\t")
        keys.setdefault(name, {})[field] = value
    return GroupCopy(group, 1, keys)


def _copy_seeds() -> list[bytes]:
    return [_lines_of(json.loads((SCHEMA_1 / "group.json").read_text())["keys"])]


@contextmanager
def _groups() -> Iterator[Check]:
    """A copy that is taken works: views, recovery and commits by the real scripts succeed."""
    with tempfile.TemporaryDirectory(prefix="coop-kafka-fuzz-") as name, ExitStack() as open_until_the_end:
        no_log = ("--appendonly", "no")
        valkey = servers.tried(lambda: servers.start_valkey(Path(name), servers.free_ports(1)[0], more=no_log))
        open_until_the_end.callback(valkey.stop)
        server = open_until_the_end.enter_context(closing(StoreServer(valkey.local_address or valkey.address)))
        world = World(server)

        def check(data: bytes) -> bool:
            copy = _copy(data, world.group)
            try:
                assert GroupCopy.parse(copy.text, world.group) == copy
            except StateFormatError:
                return False
            live_on_with(world, copy)
            return True

        yield check


class _Text(NamedTuple):
    """A text in Redis: its parser, and the way back."""

    parse: Callable[[str, str], object]
    back: Callable[[object], tuple[str, str]] | None
    seed: tuple[str, str]
    as_kept: Callable[[Any], object] = lambda value: value  # the longest parts are cut, times rounded


def _plain(value: object) -> tuple[str, str]:
    return "", str(value)


def _named(value: object) -> tuple[str, str]:
    return value.field, getattr(value, "text", None) or value.value  # type: ignore[attr-defined]


def _sent(value: object) -> tuple[str, str]:
    return "", value.text.decode()  # type: ignore[attr-defined]


def _fields(text: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in text.split(" "))


def _fields_text(fields: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in fields.items())


_BATCH = "member=m-1 rows=9 bytes=- seconds=1.500 lanes=2 slowest=- reading=7"
_QUESTION = '{"number":3,"batch":"aa","task":0,"ends":"orders 0 0000000000000000-7fffffffffffffff 7;","skipped":2}'
_LANE = "orders 0 0000000000000000-7fffffffffffffff"
_LINE = f"{_LANE} position=5 lag=45 lag_s=12 rate=9.1 record_ms=100 cost=sure quota=90 why=budget"
_HEAD = f"{acknowledgement.VERSION}/g/m-1/0/orders/id-1/0/0000000000000000-7fffffffffffffff/aa.1"
_ROW = acknowledgement._text(_HEAD, OffsetRange(4, 5))
_REPORT = b'[3,0,1,["orders",0,0,9,5,9],[4,90,1.5,2.0,true,[],null,0],[[7,1.5,2]]]'
_TEXTS: dict[str, _Text] = {
    "strike": _Text(Strike.parse, _named, (_LANE, "struck 2 6-9 1795971989278 m-1")),
    "failing": _Text(
        FailingRecord.parse,
        _named,
        ("orders 0 0000000000000005", "deferred 7 2 1795971983642 ValueError no order"),
        lambda r: replace(r, error="".join(r.error.split())[:ERROR_CHARACTERS], message=r.message[:MESSAGE_CHARACTERS]),
    ),
    "growth": _Text(Growth.parse, _named, ("orders 2 4", "id-1 ~1795971983278 1795971983287 20,30")),
    "lane": _Text(
        lambda _, text: LaneLine.parse(text),
        _plain,
        ("", _LINE),
        lambda v: replace(v, rate=round(v.rate, 1), record_ms=float(f"{v.record_ms:.3g}")),
    ),
    "seal": _Text(lambda _, t: ends.parsed(t), lambda v: ("", ends.text_of(v)), ("", f"{_LANE} 7;")),  # type: ignore[arg-type]
    "assignment": _Text(
        lambda _, text: ranges_of(text),
        lambda v: ("", ranges_text(v)),  # type: ignore[arg-type]
        ("", '{"orders":{"0":["0000000000000000-7fffffffffffffff"]}}'),
    ),
    "acknowledgement": _Text(lambda _, text: acknowledgement.Acknowledgement.parse(text), None, ("", _ROW)),
    "extent": _Text(lambda _, text: leader_epochs.parsed({TP: text}, 0, {}), None, ("", "3@20 reset=0 topic=id-1")),
    "redrive": _Text(lambda _, text: RedriveProgress.parse(7, text), lambda v: ("", v.text), ("", "9-9 12-20")),  # type: ignore[attr-defined]
    "batch": _Text(
        lambda _, text: BatchLine.of(_fields(text)),
        lambda v: ("", _fields_text(v.fields)),  # type: ignore[attr-defined]
        ("", _BATCH),
        lambda v: replace(v, seconds=round(v.seconds, 3)),
    ),
    "commit": _Text(
        lambda _, text: commit_api._parsed(text),
        lambda v: ("", json.dumps(v.to_json())),  # type: ignore[attr-defined]
        ("", _offset_seeds()[0].decode()),
    ),
    "report": _Text(
        lambda _, text: report.decoded(text.encode(errors="replace")),
        lambda v: ("", report.encoded(v).decode()),  # type: ignore[arg-type]
        ("", _REPORT.decode()),
        lambda r: replace(r, cost=_as_sent(r.cost)),
    ),
    "question": _Text(lambda _, t: questions.TaskQuestion.parse(t.encode(errors="replace")), _sent, ("", _QUESTION)),
    "answer": _Text(lambda _, t: questions.TaskAnswer.parse(t.encode(errors="replace")), _sent, ("", '{"number":3}')),
}


def _as_sent(cost: SliceCost) -> SliceCost:
    """A report has whole microseconds."""
    keys = tuple(key._replace(ms=round(key.ms, 3)) for key in cost.keys)
    return replace(cost, read_ms=round(cost.read_ms, 3), function_ms=round(cost.function_ms, 3), keys=keys)


def _text_seeds() -> Iterator[bytes]:
    yield from ("\t".join((name, *form.seed)).encode() for name, form in _TEXTS.items())


def _text(data: bytes) -> bool:
    kind, _, rest = data.decode("utf-8", "replace").partition("\t")
    field, _, value = rest.partition("\t")
    if not (form := _TEXTS.get(kind)):
        return False
    try:
        read = form.parse(field, value)
    except CoopKafkaError:
        return False
    if form.back and read is not None:
        kept = form.parse(*form.back(read))
        assert kept == form.as_kept(read), (read, kept)
    return read is not None


# -- the mirror --------------------------------------------------------------------------------


def _mirror_seeds() -> list[bytes]:
    texts = json.loads((SCHEMA_1 / "mirror.json").read_text())
    return ["\n".join(f"{name} {offset} {text}" for name, (offset, text) in texts.items()).encode()]


def _entries(data: bytes) -> dict[TopicPartition, tuple[int, str]]:
    """Lines of partition, offset and metadata, as far as Kafka could hold them."""
    found: dict[TopicPartition, tuple[int, str]] = {}
    for line in data.decode("utf-8", "replace").split("\n"):
        name, _, rest = line.partition(" ")
        offset, _, text = rest.partition(" ")
        topic, _, number = name.rpartition("-")
        if topic and number in set("0123") and is_number(offset):
            found[TopicPartition(topic, int(number))] = int(offset), text
    return found


def _mirror(data: bytes) -> bool:
    try:
        offsets = mirror.of_this_schema(_entries(data), "orders")
    except StateFormatError:
        return False
    ours = mirror.of_founding(mirror.usable(offsets, TOPICS), "aa")
    proven = mirror.mirrored(ours, TOPICS)
    for tp in proven:
        assert _written_again(tp, {tp: ours[tp]}) == ours[tp], tp
    for growth in mirror.growths(ours, TOPICS):  # a group records them in Redis
        assert Growth.parse(growth.field, growth.value) == growth
    mirror.since_reset(ours, mirror.latest_reset(ours))
    list(mirror.outgrown(ours, TOPICS))
    return bool(proven)


def _written_again(tp: TopicPartition, entry: mirror.GroupOffsets) -> tuple[int, str]:
    """An entry as a member writes what it reads there."""
    grew, found = mirror.growths(entry, TOPICS), mirror.policies(entry)
    extent, reset = mirror.extents(entry, TOPICS).get(tp), mirror.latest_reset(entry)
    plain = mirror.entry(entry[tp][0], reset, TOPICS[tp.topic].id, extent, next(iter(grew), None))
    policy = found and (found[0], tp.topic not in found[1])
    founding = mirror.foundings(entry).get(tp)
    whole = mirror.with_policy(plain, policy)
    return mirror.with_founding(whole, founding) if founding else whole


# -- what other programs wrote -----------------------------------------------------------------


def _sound(done: Iterable[DoneOffsets]) -> None:
    for of_tp in done:
        assert 0 <= of_tp.position <= OFFSET_MAX, of_tp
        assert not of_tp.above or of_tp.position < of_tp.above[0].start, of_tp
        assert all(left.until < right.start for left, right in pairwise(of_tp.above)), of_tp


def _parallel(data: bytes) -> bool:
    """Two bytes of an offset, then metadata as it is, or, if the first is odd, its bytes before base64."""
    if len(data) < 2:
        return False
    text = b64encode(data[2:]).decode() if data[0] % 2 else data[2:].decode("latin-1")
    try:
        found = parallel_consumer.done(TP, data[1], text)
    except StateFormatError:
        return False
    _sound([found])
    if data[0] % 2:
        assert found == _expected(data[1], data[2:]), found
    return True


def _expected(committed: int, raw: bytes) -> DoneOffsets:
    """The done offsets, each encoding read in the plainest way."""
    letter, data = chr(raw[0]) if raw else "", raw[1:]
    if letter in "asJp" and data:
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    width = 2 if letter in "lanJ" else 4
    if letter in "laos":
        bits = f"{int.from_bytes(data[width:], 'little'):b}"[::-1]
        done = [(i, i + 1) for i, bit in enumerate(bits[: int.from_bytes(data[:width], "big")]) if bit == "1"]
    else:
        lengths = [length for (length,) in struct.iter_unpack(">h" if width == 2 else ">i", data)]
        places = [0, *accumulate(lengths)]
        done = [*zip(places[1::2], places[2::2], strict=False)]
    ranges = union(OffsetRange(committed + at, committed + until) for at, until in done if at < until)
    first = ranges[0].until if ranges and ranges[0].start == committed else committed
    return DoneOffsets(TP, first, ranges[first > committed :])


def _parallel_seeds() -> Iterator[bytes]:
    plain = struct.pack(">4h", 3, 2, 1, 4)
    yield b"\1\7"
    for letter, body in (("l", b"\0\x0a\x0f\x02"), ("o", b"\0\0\0\x0a\x0f\x02"), ("n", plain), ("e", plain)):
        yield b"\1\7" + letter.encode() + body
        yield b"\0\7" + b64encode(letter.encode() + body)
    for letter, body in (("a", b"\0\x0a\x0f\x02"), ("J", plain)):
        yield b"\1\7" + letter.encode() + zstandard.compress(body)


_TOPIC_ID = UUID(int=1)
_KEY = struct.pack(">hh", 0, 1) + b"g" + _TOPIC_ID.bytes + struct.pack(">i", 0)


def _share_seeds() -> Iterator[bytes]:
    states = b"\2" + struct.pack(">qqbh", 10, 12, 2, 1) + b"\0\0"
    snapshot = struct.pack(">hiiiqqq", 0, 1, 1, 1, 5, 1, 1) + states
    update = struct.pack(">hiiq", 0, 1, 1, -1) + states
    for kind, value in ((0, snapshot), (1, update)):
        key = struct.pack(">h", kind) + _KEY[2:]
        yield struct.pack(">HH", len(key), len(value)) + key + value


def _share(data: bytes) -> bool:
    """Records, each with the lengths of its key and its value before it."""
    records, at = [(_KEY, _snapshot_at_0())], 0
    while at + 4 <= len(data):
        of_key, of_value = struct.unpack_from(">HH", data, at)
        key, value = data[at + 4 : at + 4 + of_key], data[at + 4 + of_key : at + 4 + of_key + of_value]
        records.append((key, value))
        at += 4 + of_key + of_value
    try:
        found = share_group.done(records, "g", {str(_TOPIC_ID): "orders"})
    except StateFormatError:
        return False
    _sound(found)
    return bool(found)


def _snapshot_at_0() -> bytes:
    return struct.pack(">hiiiqqq", 0, 1, 1, 1, 0, 1, 1) + b"\1\0"


TARGETS: dict[str, Target] = {
    "record-batches": Target("record batches, as kafka-python reads them", _batch_seeds, _batches),
    "offsets": Target("offsets in a checkpoint", _offset_seeds, pure(_offset)),
    "groups": Target("a group's hashes in Redis, and a member's life with them", _copy_seeds, _groups),
    "texts": Target("other texts in Redis, and of tasks", _text_seeds, pure(_text)),
    "mirror": Target("the mirror in Kafka's group", _mirror_seeds, pure(_mirror)),
    "parallel-consumer": Target("commits of parallel-consumer", _parallel_seeds, pure(_parallel)),
    "share-group": Target("states of share groups", _share_seeds, pure(_share)),
    "spark-checkpoint": Target(
        "checkpoints of Spark's source", lambda: [b'v1\n{}\n{"orders":{"0":7,"1":9}}\n-'], _checkpoints
    ),
}
