"""Decodes Kafka's record batches (message format v2) to columns, all records of several batches at once.

    record:  length | attributes | time delta | offset delta | key | value | number of headers | headers
    numbers are varints (attributes: one byte); a key or value is its length, -1 for null, and its bytes

https://kafka.apache.org/documentation/#messageformat. Knows the format; nothing of kafka-python's consumer,
of lanes or of Spark.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from kafka.errors import CorruptRecordError
from numpy.typing import NDArray

from spark_coop_source.decode.batch_parts import BatchParts
from spark_coop_source.decode.byte_column import MOST_BYTES, ByteColumn
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.decompression import Blocks, Payload, TooLargeError, blocks, fits
from spark_coop_source.decode.header_column import HeaderColumn
from spark_coop_source.decode.record_places import chained
from spark_coop_source.decode.side_by_side import side_by_side
from spark_coop_source.decode.sizes import UNBOUNDED, DecodeLimits, TooLarge, UndividedUnit, refuse
from spark_coop_source.decode.varints import Places, Wire, varints

CREATE_TIME, APPEND_TIME = 0, 1

SMALLEST = 7
"""Bytes of an empty record: length, attributes, two deltas, key, value, headers."""

UNORDERED = "the offsets of records do not ascend from the first to the last of their batch"


@dataclass(frozen=True, slots=True)
class RawBatch:
    """A batch from the broker: the fields of its header, and its records, compressed with `codec`."""

    base_offset: int
    last_offset: int
    count: int
    codec: int
    first_timestamp_ms: int
    append_time_ms: int | None  # the broker's clock, where the topic stores that instead of the producers' time
    payload: Payload = field(repr=False)

    def __len__(self) -> int:
        """Bytes of the compressed records, without the header."""
        return len(self.payload)


class _BatchTooLargeError(TooLargeError):
    pass


def decoded(
    batches: Iterable[RawBatch],
    rows: int,
    size: int,
    sizes: DecodeLimits = UNBOUNDED,
    too_large: Callable[[TooLarge], None] = refuse,
) -> Iterator[Chunk]:
    """The records of `batches` in chunks of about `rows` and `size` bytes.

    Small batches are decoded together, each whole. A batch of more than `size` bytes is decoded in parts. A chunk
    exceeds `size` in three cases: it is a single record, it is a batch of many small records, or its last batch
    decompresses to more.

    For a batch or record that exceeds `sizes`, it calls `too_large`. If that does not raise, it skips the batch or
    record. Raises kafka-python's `CorruptRecordError` or `UnsupportedCodecError`.
    """
    group = _Group()
    for batch in batches:
        if group.batches and (group.count + batch.count > rows or group.held >= size):
            yield group.columns()
            group = _Group()
        try:
            payload, blocks = _opened(batch, size, sizes)
            if payload is None or group.held + len(payload) > MOST_BYTES:
                yield from group.chunks()
                group = _Group()
            if payload is None:
                yield from _in_parts(batch, blocks, rows, size, sizes, too_large)
            else:
                group.add(batch, payload)
        except TooLargeError as error:
            yield from group.chunks()
            group = _Group()
            of = UndividedUnit.BATCH if isinstance(error, _BatchTooLargeError) else UndividedUnit.RECORD
            too_large(TooLarge(batch.base_offset, batch.last_offset + 1, str(error), of))
    yield from group.chunks()


def _opened(batch: RawBatch, size: int, sizes: DecodeLimits) -> tuple[Payload | None, Blocks]:
    """All bytes of a batch if they are at most `size`; otherwise None, and the blocks to decompress one by one."""
    if batch.codec == 0:
        return (batch.payload, iter(())) if len(batch.payload) <= size else (None, iter([batch.payload]))
    rest = blocks(batch.codec, batch.payload, sizes.record)
    first: list[Payload] = []
    held = 0
    for block in rest:
        first.append(block)
        held += len(block)
        if held > min(size, sizes.batch):
            break
    else:
        return (first[0] if len(first) == 1 else b"".join(first)), rest
    what = f"a record batch of {len(batch)} bytes that holds more than {sizes.batch}"
    if not fits(batch.codec, batch.payload, sizes.batch):
        raise _BatchTooLargeError(what)
    return None, _counted(chain(first, rest), sizes.batch, what)


def _counted(blocks: Blocks, most: int, what: str) -> Blocks:
    """The same blocks; raises when they exceed `most` bytes, because a gzip stream may declare a wrong size."""
    held = 0
    for block in blocks:
        held += len(block)
        if held > most:
            raise _BatchTooLargeError(what)
        yield block


def _in_parts(
    batch: RawBatch, blocks: Blocks, rows: int, size: int, sizes: DecodeLimits, too_large: Callable[[TooLarge], None]
) -> Iterator[Chunk]:
    def passed_over(offset_delta: int, its_size: int) -> None:
        offset = batch.base_offset + offset_delta
        what = f"a record of {its_size} bytes, more than {sizes.record}"
        too_large(TooLarge(offset, offset + 1, what, UndividedUnit.RECORD))

    largest = MOST_BYTES // 2 if batch.codec == 0 else sizes.record
    last = batch.base_offset - 1
    with _refused():
        for part in BatchParts(blocks, batch.count, largest, passed_over).of(rows, size):
            chunk = _decoded(part.data, part.places, [batch], [len(part.places)])
            if chunk.offsets[0] <= last:
                raise ValueError(UNORDERED)
            last = int(chunk.offsets[-1])
            yield chunk


@dataclass(slots=True)
class _Group:
    """Small batches that are decoded together, and their bytes."""

    batches: list[RawBatch] = field(default_factory=list)
    payloads: list[Payload] = field(default_factory=list)
    count: int = 0
    held: int = 0

    def add(self, batch: RawBatch, payload: Payload) -> None:
        if batch.count * SMALLEST > len(payload) or batch.count < 0 or (not batch.count and len(payload)):
            raise CorruptRecordError(f"a batch of {len(payload)} bytes that declares {batch.count} records")
        if batch.count:
            self.batches.append(batch)
            self.payloads.append(payload)
            self.count += batch.count
            self.held += len(payload)

    def chunks(self) -> Iterator[Chunk]:
        if self.batches:
            yield self.columns()

    def columns(self) -> Chunk:
        data = b"".join(self.payloads)
        with _refused():
            places = _places(data, self.batches, self.payloads)
            return _decoded(data, places, self.batches, [batch.count for batch in self.batches])


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except IndexError as error:
        raise CorruptRecordError("a record reaches beyond the end of its batch") from error
    except ValueError as error:
        raise CorruptRecordError(str(error)) from error


def _places(data: bytes, batches: Sequence[RawBatch], payloads: Sequence[Payload]) -> Places:
    """The place of each record's length."""
    ends = np.cumsum([len(payload) for payload in payloads])
    begins = np.concatenate([[0], ends[:-1]])
    found = side_by_side(data, begins, np.array([batch.count for batch in batches]))
    if found is not None and (found[1] == ends).all():
        return found[0]
    return np.concatenate(list(_one_by_one(data, begins, ends, batches)))


def _one_by_one(data: bytes, begins: Places, ends: Places, batches: Sequence[RawBatch]) -> Iterator[Places]:
    for begin, end, batch in zip(begins.tolist(), ends.tolist(), batches, strict=True):
        of_batch, found_end = chained(data, begin, batch.count)
        if found_end != end:
            raise ValueError(f"{batch.count} records do not end where their batch does")
        yield from of_batch


def _decoded(data: Payload, places: Places, batches: Sequence[RawBatch], counts: Sequence[int]) -> Chunk:
    wire = np.frombuffer(data, np.uint8)
    lengths, at = varints(wire, places)
    ends = at + lengths
    time_deltas, at = varints(wire, at + 1)  # attributes: Kafka has defined none
    offset_deltas, at = varints(wire, at)
    keys, at = _byte_strings(data, wire, at)
    values, at = _byte_strings(data, wire, at)
    headers, at = varints(wire, at)
    if (lengths < 0).any() or (headers < 0).any() or (at > ends).any() or (at != ends)[headers == 0].any():
        raise ValueError("a record is longer or shorter than its length field")
    of_record = np.repeat(np.arange(len(batches)), counts)
    offsets = np.array([batch.base_offset for batch in batches], np.int64)[of_record] + offset_deltas
    ends_of_batches = np.cumsum(counts) - 1
    lasts = np.array([batch.last_offset for batch in batches], np.int64)
    if (offset_deltas[ends_of_batches - counts + 1] < 0).any() or (offsets[ends_of_batches] > lasts).any():
        raise ValueError(UNORDERED)
    if (offsets[1:] <= offsets[:-1]).any():
        raise ValueError(UNORDERED)
    times, types = _times(time_deltas, batches, of_record)
    return Chunk(
        keys=keys,
        values=values,
        offsets=offsets,
        timestamps_ms=times,
        timestamp_types=types,
        headers=HeaderColumn(data, at, headers, ends),
    )


def _byte_strings(data: Payload, wire: Wire, at: Places) -> tuple[ByteColumn, Places]:
    lengths, starts = varints(wire, at)
    nulls = lengths < 0
    if (lengths > len(data)).any():
        raise ValueError("a key or value is longer than its batch")
    lengths[nulls] = 0
    return ByteColumn(data, starts, lengths, nulls), starts + lengths


def _times(
    deltas: NDArray[np.int64], batches: Sequence[RawBatch], of_record: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    appended = np.array([batch.append_time_ms is not None for batch in batches])[of_record]
    base = np.array([b.first_timestamp_ms if b.append_time_ms is None else b.append_time_ms for b in batches], np.int64)
    times = base[of_record] + np.where(appended, 0, deltas)
    return times, np.where(appended, APPEND_TIME, CREATE_TIME).astype(np.int32)
