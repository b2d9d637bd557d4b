"""Decompresses record batches piece by piece, in the five ways of Kafka's producers.

A few bytes can stand for gigabytes, so nothing here makes more than `BLOCK_BYTES` at a time. Snappy is the exception:
its blocks cannot be cut, so this module reads their size first.

    payload   |--|  ->  block | block | block ...       made one by one, as the caller asks for them

Knows Kafka's codec numbers, and how Kafka frames snappy; nothing of the content.
"""

import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, TypeVar

import lz4.frame
import snappy
import zstandard
from kafka.errors import CorruptRecordError, UnsupportedCodecError

Payload: TypeAlias = bytes | bytearray | memoryview
Blocks: TypeAlias = Iterator[Payload]

BLOCK_BYTES = 4 * 1024 * 1024
"""Most bytes of one block of gzip, lz4 and zstd. Most batches fit into one, because to join blocks costs a copy."""

FIRST_BYTES = 128 * 1024
"""First request to zstd where a frame does not declare its size: most batches are smaller."""

INPUT_BYTES = 256 * 1024
"""Bytes of one call of zlib: it copies its unused input."""

MOST_STREAMS = 1_000
"""Most gzip members or lz4 frames in one batch. Producers write one; each costs time, also an empty one."""

XERIAL = b"\x82SNAPPY\0"
"""The first 8 bytes of a stream of Java's snappy library. Two versions follow, then blocks, each with its length."""

SNAPPY_RATIO = 32
"""Three bytes of snappy stand for 64 at most: a block that declares more is damaged."""

LZ4_RATIO = 255

ZSTD_BLOCK = 128 * 1024
"""Most bytes in a block of zstd."""


class TooLargeError(Exception):
    """The decompressed bytes would exceed the limit."""


def blocks(codec: int, payload: Payload, largest: int) -> Blocks:
    """The decompressed bytes of `codec`, the number in a batch's attributes, block by block.

    No block has more than `largest` bytes. Blocks that can be cut have at most `BLOCK_BYTES`. Raises kafka-python's
    `UnsupportedCodecError` for a number that Kafka does not use, and its `CorruptRecordError` for bytes of another
    format. Raises `TooLargeError` for a larger block of snappy.
    """
    if codec not in _UNDO:
        raise UnsupportedCodecError(f"compression type {codec}")
    name, undo = _UNDO[codec]
    try:
        yield from undo(payload, largest)
    except (TooLargeError, MemoryError):
        raise
    except Exception as error:  # each library has its own errors
        raise CorruptRecordError(f"not a {name} stream: {error!r}") from error


def fits(codec: int, payload: Payload, most: int) -> bool:
    """Whether `payload` decompresses to at most `most` bytes, by the sizes in its format. Gzip's size may be wrong.

    Where lz4 or zstd does not declare the size, it decompresses all, block by block.
    """
    if codec == _GZIP:  # modulo 2^32, of the last member
        return int.from_bytes(payload[-4:], "little") <= most
    bound = _most_in_zstd(payload) if codec == _ZSTD else len(payload) * _RATIOS.get(codec, 1)
    return bound <= most or _holds_at_most(codec, payload, most)


def _holds_at_most(codec: int, payload: Payload, most: int) -> bool:
    held = 0
    try:
        for block in blocks(codec, payload, most):
            held += len(block)
            if held > most:
                return False
    except TooLargeError:
        return False
    return True


def _plain(payload: Payload, largest: int) -> Blocks:
    yield payload


def _from_gzip(payload: Payload, largest: int) -> Blocks:
    at = 0
    for _ in range(MOST_STREAMS):
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            given: Payload = member.unconsumed_tail
            if not given:
                given = payload[at : at + INPUT_BYTES]
                at += len(given)
            if made := member.decompress(given, BLOCK_BYTES):
                yield made
            elif not given and not member.eof:
                raise EOFError("its end is missing")
        at -= len(member.unused_data)
        if not bytes(payload[at:]).strip(b"\0"):  # gzip lets zeros follow
            return
    raise ValueError(f"more than {MOST_STREAMS} members")


def _from_snappy(payload: Payload, largest: int) -> Blocks:
    if bytes(payload[:8]) != XERIAL:
        yield _snappy_block(payload, largest)
        return
    at, held = 16, 0
    made: list[Payload] = []
    while at < len(payload):
        start = at + 4
        at = start + int.from_bytes(payload[at:start], "big")
        if at > len(payload):
            raise EOFError("its end is missing")
        made.append(_snappy_block(payload[start:at], largest))
        held += len(made[-1])
        if held >= BLOCK_BYTES:
            yield b"".join(made)
            made, held = [], 0
    if made:
        yield b"".join(made)


def _snappy_block(block: Payload, largest: int) -> bytes:
    declared = shift = 0
    for byte in block[:5]:
        declared |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    if declared > SNAPPY_RATIO * len(block):
        raise ValueError(f"a block of {len(block)} bytes that declares {declared}")
    if declared > largest:
        raise TooLargeError(f"a snappy block of {declared} bytes")
    return bytes(snappy.uncompress(block))


_Kept = TypeVar("_Kept")


def _kept(idle: deque[_Kept], make: Callable[[], _Kept]) -> _Kept:
    """An idle decompressor, or a new one: they are slow to make. Each serves one stream at a time."""
    try:
        return idle.pop()
    except IndexError:
        return make()


_lz4_contexts: deque[object] = deque(maxlen=4)


def _from_lz4(payload: Payload, largest: int) -> Blocks:
    context = _kept(_lz4_contexts, lz4.frame.create_decompression_context)
    at = 0
    for _ in range(MOST_STREAMS):
        ended = False
        while not ended:
            if at >= len(payload):
                raise EOFError("its end is missing")
            rest = payload[at:] if at else payload
            made, read, ended = lz4.frame.decompress_chunk(context, rest, max_length=BLOCK_BYTES)
            at += read
            if made:
                yield made
            elif not read and not ended:
                raise EOFError("its end is missing")
        if at >= len(payload):
            _lz4_contexts.append(context)  # after the end of a frame it can be used again
            return
    raise ValueError(f"more than {MOST_STREAMS} frames")


_zstd_decompressors: deque[zstandard.ZstdDecompressor] = deque(maxlen=4)


def _from_zstd(payload: Payload, largest: int) -> Blocks:
    decompressor = _kept(_zstd_decompressors, zstandard.ZstdDecompressor)
    size = _first_of_zstd(payload)
    with decompressor.stream_reader(payload, read_across_frames=True) as reader:
        while made := reader.read(size):
            yield made
            size = BLOCK_BYTES
    _zstd_decompressors.append(decompressor)


def _first_of_zstd(payload: Payload) -> int:
    """Size of the first request: the whole content, if the first frame declares its size."""
    try:
        declared = zstandard.frame_content_size(payload)
    except zstandard.ZstdError:  # the decoder raises its own error
        return FIRST_BYTES
    return min(declared, BLOCK_BYTES) if declared > 0 else FIRST_BYTES


def _most_in_zstd(payload: Payload) -> int:
    """The most bytes of all blocks of all frames, by their headers alone.

    frame:  head | block head, block | ... | checksum       RFC 8878; the head of a block has 3 bytes: last, type, size
    """
    at = most = 0
    while at < len(payload):
        magic = int.from_bytes(payload[at : at + 4], "little")
        if magic >> 4 == 0x184D2A5:  # a frame to skip
            at += 8 + int.from_bytes(payload[at + 4 : at + 8], "little")
            continue
        has_checksum = len(payload) > at + 4 and payload[at + 4] & 4
        at += _zstd_head(payload, at)
        last = 0
        while not last and at < len(payload):
            head = int.from_bytes(payload[at : at + 3], "little")
            last, kind, size = head & 1, head >> 1 & 3, head >> 3
            most += min(size, ZSTD_BLOCK) if kind in (_RAW, _RUN) else ZSTD_BLOCK
            at += 3 + (1 if kind == _RUN else size)
        at += 4 if has_checksum else 0
    return most


_RAW, _RUN = 0, 1
"""Types of zstd's blocks whose header has the size of the content."""


def _zstd_head(payload: Payload, at: int) -> int:
    """The size of a frame's header; if it is not a header, the decoder raises later."""
    try:
        return zstandard.frame_header_size(payload[at : at + 18])
    except zstandard.ZstdError:
        return len(payload)


_GZIP, _SNAPPY, _LZ4, _ZSTD = 1, 2, 3, 4
_RATIOS = {_SNAPPY: SNAPPY_RATIO, _LZ4: LZ4_RATIO}
_UNDO: Mapping[int, tuple[str, Callable[[Payload, int], Blocks]]] = {
    0: ("plain", _plain),
    _GZIP: ("gzip", _from_gzip),
    _SNAPPY: ("snappy", _from_snappy),
    _LZ4: ("lz4", _from_lz4),
    _ZSTD: ("zstd", _from_zstd),
}
