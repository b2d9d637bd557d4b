"""The five ways in which Kafka's producers compress a record batch, undone.

Knows the numbers that Kafka gives to them and how Kafka frames snappy; nothing of what is inside.
"""

import gzip
import threading
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TypeAlias

import lz4.frame
import snappy
import zstandard
from kafka.errors import CorruptRecordError, UnsupportedCodecError

Payload: TypeAlias = bytes | bytearray | memoryview

XERIAL = b"\x82SNAPPY\0"
"""How the stream of Java's snappy library begins: these 8 bytes, two versions, then blocks, each with its length."""


def decompressed(codec: int, payload: Payload) -> Payload:
    """The bytes that were compressed with `codec`, the number in a batch's attributes.

    Raises kafka-python's `UnsupportedCodecError` for a number that Kafka has not given away yet, and its
    `CorruptRecordError` for bytes that were not compressed so.
    """
    if codec not in _UNDO:
        raise UnsupportedCodecError(f"compression type {codec}")
    name, undo = _UNDO[codec]
    try:
        return undo(payload)
    except Exception as error:  # each library has its own
        raise CorruptRecordError(f"not a {name} stream: {error!r}") from error


def _from_snappy(payload: Payload) -> Payload:
    if bytes(payload[:8]) != XERIAL:
        return bytes(snappy.uncompress(payload))
    bounds = [16]
    while bounds[-1] < len(payload):
        bounds.append(bounds[-1] + 4 + int.from_bytes(payload[bounds[-1] : bounds[-1] + 4], "big"))
    return b"".join(snappy.uncompress(payload[start + 4 : end]) for start, end in pairwise(bounds))


class _OfThread(threading.local):
    """A decompressor is worth keeping, and not to be used from two threads at once."""

    def __init__(self) -> None:
        self.zstd = zstandard.ZstdDecompressor()


_of_thread = _OfThread()


def _from_zstd(payload: Payload) -> Payload:
    with _of_thread.zstd.stream_reader(payload, read_across_frames=True) as reader:
        return reader.readall()


def _from_lz4(payload: Payload) -> Payload:
    data, read = lz4.frame.decompress(payload, return_bytes_read=True)
    return bytes(data) if read == len(payload) else bytes(data) + _from_lz4(payload[read:])  # frame after frame


_UNDO: Mapping[int, tuple[str, Callable[[Payload], Payload]]] = {
    0: ("plain", lambda payload: payload),
    1: ("gzip", gzip.decompress),
    2: ("snappy", _from_snappy),
    3: ("lz4", _from_lz4),
    4: ("zstd", _from_zstd),
}
