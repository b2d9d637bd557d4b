"""From Kafka's record batches (message format v2) to columns, all records of several batches at once.

    record:  length | attributes | time delta | offset delta | key | value | number of headers | headers
    numbers are varints (attributes: one byte); a key or value is its length, -1 for null, and its bytes

https://kafka.apache.org/documentation/#messageformat. Knows the format; nothing of kafka-python's consumer,
of lanes or of Spark.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from kafka.errors import CorruptRecordError
from numpy.typing import NDArray

from spark_coop_source.decode.byte_column import MOST_BYTES, ByteColumn
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.decompression import Payload, decompressed
from spark_coop_source.decode.header_column import HeaderColumn
from spark_coop_source.decode.record_places import chained
from spark_coop_source.decode.side_by_side import side_by_side
from spark_coop_source.decode.varints import Places, Wire, varints

CREATE_TIME, APPEND_TIME = 0, 1


@dataclass(frozen=True, slots=True)
class RawBatch:
    """A batch as the broker sent it: what its head says, and its records, compressed with `codec`."""

    base_offset: int
    count: int
    codec: int
    first_timestamp_ms: int
    append_time_ms: int | None  # the broker's clock, where the topic keeps that instead of the producers'
    payload: Payload = field(repr=False)

    def __len__(self) -> int:
        """Bytes as sent, without the head."""
        return len(self.payload)


def decoded(batches: Iterable[RawBatch], rows: int, size: int) -> Iterator[Chunk]:
    """The records of `batches`, which all have some, in chunks of about `rows` and `size` bytes, whole batches each.

    A chunk has more only if it is a single batch, or for the last batch turning out larger than it came.
    Raises kafka-python's `CorruptRecordError` or `UnsupportedCodecError`.
    """
    group: list[RawBatch] = []
    payloads: list[Payload] = []
    counted = held = 0
    for batch in batches:
        if group and (counted + batch.count > rows or held >= size):
            yield _columns(group, payloads)
            group, payloads, counted, held = [], [], 0, 0
        payload = decompressed(batch.codec, batch.payload)
        if group and held + len(payload) > MOST_BYTES:
            yield _columns(group, payloads)
            group, payloads, counted, held = [], [], 0, 0
        group.append(batch)
        payloads.append(payload)
        counted += batch.count
        held += len(payload)
    if group:
        yield _columns(group, payloads)


def _columns(batches: Sequence[RawBatch], payloads: Sequence[Payload]) -> Chunk:
    data = b"".join(payloads)
    if len(data) > MOST_BYTES:
        raise CorruptRecordError(f"a batch of {len(data)} bytes, which is more than {MOST_BYTES}")
    try:
        return _decoded(data, _places(data, batches, payloads), batches)
    except IndexError as error:
        raise CorruptRecordError("a record reaches beyond the end of its batch") from error
    except ValueError as error:
        raise CorruptRecordError(str(error)) from error


def _places(data: bytes, batches: Sequence[RawBatch], payloads: Sequence[Payload]) -> Places:
    """Where each record begins: the place of its length."""
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


def _decoded(data: bytes, places: Places, batches: Sequence[RawBatch]) -> Chunk:
    wire = np.frombuffer(data, np.uint8)
    lengths, at = varints(wire, places)
    ends = at + lengths
    time_deltas, at = varints(wire, at + 1)  # 1: attributes, of which there are none yet
    offset_deltas, at = varints(wire, at)
    keys, at = _byte_strings(data, wire, at)
    values, at = _byte_strings(data, wire, at)
    headers, at = varints(wire, at)
    if (lengths < 0).any() or (headers < 0).any() or (at > ends).any() or (at != ends)[headers == 0].any():
        raise ValueError("a record is longer or shorter than it says")
    of_record = np.repeat(np.arange(len(batches)), [batch.count for batch in batches])
    times, types = _times(time_deltas, batches, of_record)
    return Chunk(
        keys=keys,
        values=values,
        offsets=np.array([batch.base_offset for batch in batches], np.int64)[of_record] + offset_deltas,
        timestamps_ms=times,
        timestamp_types=types,
        headers=HeaderColumn(data, at, headers, ends),
    )


def _byte_strings(data: bytes, wire: Wire, at: Places) -> tuple[ByteColumn, Places]:
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
