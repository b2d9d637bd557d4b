"""The commits of Confluent's parallel-consumer: an offset, and in its metadata text which later records are done. Pure.

    metadata    base64 of one byte, the encoding, and the data behind it; empty if nothing later is done
    bitmap      the number of offsets, then a bit for each from the committed offset on, the lowest first: 1 is done
    runs        lengths of runs from the committed offset on: not done and done by turns, not done first

Numbers are big-endian: of 2 bytes in version 1, of 4 bytes in version 2. Some encodings are compressed with Zstandard.
An offset that holds no record counts as done.
"""

import binascii
import struct
from base64 import b64decode
from collections.abc import Callable, Iterator

import zstandard

from coordinator.errors import StateFormatError
from coordinator.tools.moving.progress import DoneOffsets, completed
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition

_MOST_BYTES = 64 * 1024 * 1024
_Decoder = Callable[[bytes, int], Iterator[int]]


def done(tp: TopicPartition, offset: int, metadata: str) -> DoneOffsets:
    """The progress that a commit shows. Raises `StateFormatError` for metadata of another program."""
    try:
        text = b64decode(metadata, validate=True)
        if not text:
            return DoneOffsets(tp, offset)
        decode, width, compressed = _ENCODINGS[text[0]]
        data = zstandard.ZstdDecompressor().decompressobj().decompress(text[1:]) if compressed else text[1:]
        above = completed(decode(data, width))
    except (binascii.Error, KeyError, ValueError, struct.error, zstandard.ZstdError) as error:
        raise StateFormatError(
            f"the commit of {tp} at {offset} holds metadata that is not of parallel-consumer 0.5",
            "pass --from kafka-group: it takes the offsets alone, and later records are read again",
        ) from error
    return _from(tp, offset, above)


def _from(tp: TopicPartition, offset: int, above: tuple[OffsetRange, ...]) -> DoneOffsets:
    """Absolute offsets. What is done at the committed offset itself raises the position."""
    ranges = [OffsetRange(offset + r.start, offset + r.until) for r in above]
    if ranges and ranges[0].start == offset:
        return DoneOffsets(tp, ranges[0].until, tuple(ranges[1:]))
    return DoneOffsets(tp, offset, tuple(ranges))


def _of_bitmap(data: bytes, width: int) -> Iterator[int]:
    count, bits = int.from_bytes(data[:width], "big"), data[width:]
    if len(data) < width or 8 * len(bits) < count:
        raise ValueError("the bitmap is cut")
    return (i for i in range(count) if bits[i // 8] >> i % 8 & 1)


def _of_runs(data: bytes, width: int) -> Iterator[int]:
    if len(data) % width:
        raise ValueError("the runs are cut")
    return _offsets_of(struct.unpack(f">{len(data) // width}{'h' if width == 2 else 'i'}", data))


def _offsets_of(lengths: tuple[int, ...]) -> Iterator[int]:
    at = 0
    for i, length in enumerate(lengths):
        if length < 0 or at + length > 8 * _MOST_BYTES:
            raise ValueError("a run has no such length")
        if i % 2:
            yield from range(at, at + length)
        at += length


_ENCODINGS: dict[int, tuple[_Decoder, int, bool]] = {
    ord("l"): (_of_bitmap, 2, False),
    ord("a"): (_of_bitmap, 2, True),
    ord("o"): (_of_bitmap, 4, False),
    ord("s"): (_of_bitmap, 4, True),
    ord("n"): (_of_runs, 2, False),
    ord("J"): (_of_runs, 2, True),
    ord("e"): (_of_runs, 4, False),
    ord("p"): (_of_runs, 4, True),
}
"""Encoding byte -> how to read it, the bytes of a number, and whether it is compressed."""
