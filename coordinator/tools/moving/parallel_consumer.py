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
from itertools import pairwise

import numpy as np
import zstandard

from coordinator.errors import StateFormatError
from coordinator.tools.moving.progress import DoneOffsets
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition

_MOST_BYTES = 4 * 1024 * 1024
"""Of a text once it is decompressed: as bits, 32 million offsets."""

_LONGEST_RUN = 2**29
_MOST_RANGES = 1_000_000
_Decoder = Callable[[bytes, int], Iterator[OffsetRange]]


def done(tp: TopicPartition, offset: int, metadata: str) -> DoneOffsets:
    """The progress that a commit shows. Raises `StateFormatError` for metadata of another program."""
    try:
        text = b64decode(metadata, validate=True)
        if not text:
            return DoneOffsets(tp, offset)
        decode, width, compressed = _ENCODINGS[text[0]]
        above = [*decode(_decompressed(text[1:]) if compressed else text[1:], width)]
    except (binascii.Error, KeyError, ValueError, struct.error, zstandard.ZstdError) as error:
        raise StateFormatError(
            f"the commit of {tp} at {offset} holds metadata that is not of parallel-consumer 0.5",
            "pass --from kafka-group: it takes the offsets alone, and later records are read again",
        ) from error
    return DoneOffsets.of(tp, offset, (OffsetRange(offset + r.start, offset + r.until) for r in above))


def _decompressed(data: bytes) -> bytes:
    text: bytes = zstandard.ZstdDecompressor().stream_reader(data).read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise ValueError("a text that no parallel-consumer writes")
    return text


def _of_bitmap(data: bytes, width: int) -> Iterator[OffsetRange]:
    count, bits = int.from_bytes(data[:width], "big"), data[width:]
    if len(data) < width or 8 * len(bits) < count:
        raise ValueError("the bitmap is cut")
    flags = np.unpackbits(np.frombuffer(bits, np.uint8), count=count, bitorder="little")
    edges = np.flatnonzero(np.diff(flags, prepend=0, append=0))
    if len(edges) > 2 * _MOST_RANGES:
        raise ValueError("more ranges than a parallel-consumer has records at once")
    places = edges.tolist()
    return (OffsetRange(start, until) for start, until in zip(places[::2], places[1::2], strict=True))


def _of_runs(data: bytes, width: int) -> Iterator[OffsetRange]:
    if len(data) % width:
        raise ValueError("the runs are cut")
    lengths = np.frombuffer(data, f">i{width}").astype(np.int64)
    if (lengths < 0).any() or lengths.sum() > _LONGEST_RUN:
        raise ValueError("a run has no such length")
    places = [0, *lengths.cumsum().tolist()]
    return (OffsetRange(at, until) for i, (at, until) in enumerate(pairwise(places)) if i % 2 and at < until)


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
