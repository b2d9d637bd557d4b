"""Record batches that are small and hold much, made without holding what is in them."""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import repeat

import lz4.frame
import snappy
import zstandard
from crc32c import crc32c
from kafka.record.util import encode_varint

from spark_coop_source.fetch.raw_batches import HEAD
from wire_batches import CODECS

MIB = 1024 * 1024
XERIAL_HEAD = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)


def varint(number: int) -> bytes:
    made = bytearray()
    encode_varint(number, made.append)
    return bytes(made)


def record(delta: int, value: bytes = b"", headers: bytes = b"\0") -> bytes:
    """A record without a key; `headers` with their number."""
    body = b"\0\0" + varint(delta) + b"\1" + varint(len(value)) + value + headers
    return varint(len(body)) + body


def records(count: int, size: int, headers: bytes = b"\0") -> Iterator[bytes]:
    return (record(delta, bytes(size), headers) for delta in range(count))


def in_parts(delta: int, size: int) -> Iterator[bytes]:
    """A record of zeros, a whole number of megabytes, never held as a whole."""
    head = b"\0\0" + varint(delta) + b"\1" + varint(size)
    yield varint(len(head) + size + 1) + head
    yield from repeat(bytes(MIB), size // MIB)
    yield b"\0"


def _gzip(parts: Iterable[bytes]) -> bytes:
    stream = zlib.compressobj(9, wbits=31)
    return b"".join([*map(stream.compress, parts), stream.flush()])


def _snappy(parts: Iterable[bytes]) -> bytes:
    blocks = map(snappy.compress, parts)
    return XERIAL_HEAD + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def _lz4(parts: Iterable[bytes]) -> bytes:
    stream = lz4.frame.LZ4FrameCompressor(block_linked=False)
    return bytes(stream.begin() + b"".join(map(stream.compress, parts)) + stream.flush())


def _zstd(parts: Iterable[bytes]) -> bytes:
    stream = zstandard.ZstdCompressor().compressobj()
    return b"".join([*map(stream.compress, parts), stream.flush()])


COMPRESS: Mapping[str, Callable[[Iterable[bytes]], bytes]] = {
    "none": b"".join,
    "gzip": _gzip,
    "snappy": _snappy,
    "lz4": _lz4,
    "zstd": _zstd,
}


def sealed(codec: str, count: int, payload: bytes, *, first: int = 0, last_delta: int | None = None) -> bytes:
    """A batch that claims `count` records, with a correct crc."""
    last = count - 1 if last_delta is None else last_delta
    return resealed(HEAD.pack(first, 0, 0, 2, 0, CODECS[codec], last, 0, 0, -1, -1, -1, count) + payload)


def resealed(batch: bytes) -> bytes:
    """The same batch with the length and the crc that fit."""
    made = bytearray(batch)
    made[8:12] = (len(made) - 12).to_bytes(4, "big")
    made[17:21] = crc32c(bytes(made[21:])).to_bytes(4, "big")
    return bytes(made)


def bomb(codec: str, count: int, size: int, headers: bytes = b"\0", *, first: int = 0) -> bytes:
    """`count` records of `size` zeros."""
    return sealed(codec, count, COMPRESS[codec](records(count, size, headers)), first=first)
