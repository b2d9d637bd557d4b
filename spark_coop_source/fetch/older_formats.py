"""Bounds kafka-python's own decompression of message formats v0 and v1, which it decodes record by record.

kafka-python decompresses a message set whole and lists all its messages, each about 300 bytes. So this module first
measures a set block by block. Kafka has not written these formats since version 4.

    message     offset 8 | size 4 | crc 4 | magic 1 | attributes 1 | v1: time 8 | key | value = compressed messages

Knows how kafka-python calls its codecs; nothing of the consumer.
"""

import struct
from collections.abc import Callable

from kafka.errors import CorruptRecordError
from kafka.record import default_records, legacy_records

from spark_coop_source.decode.decompression import Payload, TooLargeError, blocks

MOST_BYTES = 32 * 1024 * 1024
"""Most bytes of a decompressed message set."""

OVERHEAD, SMALLEST = 12, 14
"""Bytes of a message before its crc, and the least number of bytes after that."""

MAGIC_AT, ATTRIBUTES_AT = 16, 17

_CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


class MessageSetTooLargeError(Exception):
    """A message set that is not decompressed; `last_offset` is that of its last message."""

    def __init__(self, last_offset: int) -> None:
        super().__init__(f"a message set of format v0 or v1 that holds more than {MOST_BYTES} bytes")
        self.last_offset = last_offset


def check(message: memoryview) -> None:
    """Raises `MessageSetTooLargeError`; or `CorruptRecordError` for a set that kafka-python would list forever."""
    codec = len(message) > ATTRIBUTES_AT and message[ATTRIBUTES_AT] & 0x07
    if not codec:
        return
    try:
        messages = whole(codec, _value(message))
    except TooLargeError as error:
        raise MessageSetTooLargeError(int.from_bytes(message[:8], "big", signed=True)) from error
    at = 0
    while at + OVERHEAD <= len(messages):
        size = int.from_bytes(messages[at + 8 : at + OVERHEAD], "big", signed=True)
        if size < SMALLEST:
            raise CorruptRecordError(f"a message of {size} bytes")
        at += OVERHEAD + size


def _value(message: memoryview) -> memoryview:
    at = 26 if message[MAGIC_AT] else 18
    try:
        (key,) = struct.unpack_from(">i", message, at)
        at += 4 + max(key, 0)
        (size,) = struct.unpack_from(">i", message, at)
    except struct.error as error:
        raise CorruptRecordError("a compressed message without a value") from error
    return message[at + 4 : at + 4 + max(size, 0)]


def whole(codec: int, payload: Payload) -> bytes:
    """All decompressed bytes; raises `TooLargeError` at `MOST_BYTES`, before it makes more."""
    made: list[Payload] = []
    held = 0
    for block in blocks(codec, payload, MOST_BYTES):
        made.append(block)
        held += len(block)
        if held > MOST_BYTES:
            raise TooLargeError(f"more than {MOST_BYTES} bytes")
    return b"".join(made)


def bound_codecs() -> None:
    """Bound kafka-python's decompression to `MOST_BYTES`, where it decodes all formats itself."""
    for module in (default_records, legacy_records):
        for name, codec in _CODECS.items():
            if hasattr(module, f"{name}_decode"):
                setattr(module, f"{name}_decode", _bounded(codec))


def _bounded(codec: int) -> Callable[[Payload], bytes]:
    def decode(payload: Payload) -> bytes:
        try:
            return whole(codec, payload)
        except TooLargeError as error:
            raise CorruptRecordError(str(error)) from error

    return decode
