"""Commits of parallel-consumer: both forms, both versions, plain and compressed, against a set of offsets.

`StoppedConsumers.java` wrote `parallel_consumer_commits.jsonl`: commits of a real parallel-consumer 0.5.3.3.
"""

import json
import struct
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as some

from coordinator.errors import StateFormatError
from coordinator.tools.moving.parallel_consumer import done
from coordinator.tools.moving.progress import DoneOffsets
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition

TP = TopicPartition("orders", 0)


COMMITS = [*map(json.loads, Path(__file__).with_name("parallel_consumer_commits.jsonl").read_text().splitlines())]
RECORDS = 300


@pytest.mark.parametrize("commit", COMMITS, ids=lambda commit: commit["encoding"])
def test_commits_of_a_real_parallel_consumer(commit: dict[str, Any]) -> None:
    found = done(TP, commit["offset"], commit["metadata"])
    above = {offset for r in found.above for offset in range(r.start, r.until)}
    assert {*range(found.position)} | above == {*range(RECORDS)} - {*commit["failing"]}


def bitmap(flags: list[bool], width: int) -> bytes:
    bits = sum(1 << i for i, flag in enumerate(flags) if flag)
    return len(flags).to_bytes(width, "big") + bits.to_bytes(len(flags) // 8 + 1, "little")


def runs(flags: list[bool], width: int) -> bytes:
    lengths, state = [0], False
    for flag in flags:
        if flag != state:
            lengths.append(0)
            state = flag
        lengths[-1] += 1
    return struct.pack(f">{len(lengths)}{'h' if width == 2 else 'i'}", *lengths)


ENCODINGS = {"l": (bitmap, 2), "o": (bitmap, 4), "n": (runs, 2), "e": (runs, 4)}
COMPRESSED = {"l": "a", "o": "s", "n": "J", "e": "p"}


def metadata(letter: str, flags: list[bool], *, compressed: bool) -> str:
    encode, width = ENCODINGS[letter]
    data = encode(flags, width)
    if compressed:
        letter, data = COMPRESSED[letter], zstandard.ZstdCompressor().compress(data)
    return b64encode(letter.encode("latin-1") + data).decode()


@given(
    letter=some.sampled_from("lone"),
    compressed=some.booleans(),
    offset=some.integers(0, 10**12),
    flags=some.lists(some.booleans(), max_size=200),
)
def test_each_encoding_shows_exactly_the_done_offsets(
    letter: str, compressed: bool, offset: int, flags: list[bool]
) -> None:
    found = done(TP, offset, metadata(letter, flags, compressed=compressed))
    above = {o for r in found.above for o in range(r.start, r.until)}
    assert above | set(range(offset, found.position)) == {offset + i for i, flag in enumerate(flags) if flag}
    assert not found.above or found.above[0].start > found.position


def test_a_long_run_is_read_at_once() -> None:
    text = b64encode(b"e" + struct.pack(">4i", 1, 250_000_000, 3, 250_000_000)).decode()
    ends = OffsetRange(8, 250_000_008), OffsetRange(250_000_011, 500_000_011)
    assert done(TP, 7, text) == DoneOffsets(TP, 7, ends)


def test_without_metadata_nothing_later_is_done() -> None:
    assert done(TP, 7, "") == DoneOffsets(TP, 7)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("of a plain consumer", id="another text"),
        pytest.param("coop-kafka v1 reset=0 topic=id-1", id="a mirror"),
        pytest.param(b64encode(b"?123").decode(), id="an unknown encoding"),
        pytest.param(b64encode(b"l\x00\x20\x01").decode(), id="a bitmap that is cut"),
        pytest.param(b64encode(b"n\x00\x01\x02").decode(), id="runs that are cut"),
        pytest.param(b64encode(b"e\xff\xff\xff\xff").decode(), id="a negative run"),
        pytest.param(b64encode(b"e" + 2 * b"\x7f\xff\xff\xff").decode(), id="an endless run"),
        pytest.param(b64encode(b"aabc").decode(), id="a broken compression"),
        pytest.param(
            b64encode(b"s" + zstandard.compress(b"\x0f\xff\xff\xff" + bytes(2**25))).decode(), id="33 MB of zeros"
        ),
        pytest.param(
            b64encode(b"s" + zstandard.compress(b"\x00\x40\x00\x00" + b"\x55" * 2**19)).decode(), id="too many ranges"
        ),
    ],
)
def test_metadata_of_another_program_is_refused(text: str) -> None:
    with pytest.raises(StateFormatError, match=r"commit of orders-0 at 7 holds metadata .*--from kafka-group"):
        done(TP, 7, text)
