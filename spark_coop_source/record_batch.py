"""From records to the Arrow batches that Spark takes: Spark's Kafka columns, and a useful size.

Knows the row schema of Spark's Kafka source; nothing of Kafka's client, of lanes or of offsets' meaning.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from coordinator.errors import LogError
from coordinator.ranges import OffsetRange
from coordinator.subscription import TopicPartition
from spark_coop_source.byte_column import Rows
from spark_coop_source.chunk import Chunk
from spark_coop_source.header_column import HEADERS

ROWS = 20_000
"""Rows of a batch that is worth handing over to the JVM."""

BYTES = 16 * 1024 * 1024
"""A batch is handed over earlier when it holds as much as this; one larger record is a batch of its own."""

Mask = NDArray[np.bool_]
Number = TypeVar("Number", np.int32, np.int64)

TIMESTAMP = pa.timestamp("us", tz="UTC")

WITHOUT_HEADERS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", TIMESTAMP),
        ("timestampType", pa.int32()),
    ]
)
WITH_HEADERS = WITHOUT_HEADERS.append(pa.field("headers", HEADERS))

UNREADABLE = (
    "set includeHeaders=false, or start behind that record; its producer wrote what Kafka's clients do not read"
)

_LATEST_MS = np.iinfo(np.int64).max // 1000


def to_arrow(tp: TopicPartition, chunk: Chunk, mask: Mask | None, *, include_headers: bool) -> pa.RecordBatch:
    """The records of `chunk` that `mask` keeps (all, if it is None), as Spark's Kafka source shows them.

    Its rules: a time in microseconds, -1 ms where a record has none; headers are null, not empty,
    where a record has none. Raises `LogError` for a time that Spark cannot hold.
    """
    rows = np.arange(len(chunk)) if mask is None else np.flatnonzero(mask)
    offsets = _kept(chunk.offsets, mask)
    times = _kept(chunk.timestamps_ms, mask)
    _check_times(tp, offsets, times)
    columns = [
        chunk.keys.take(rows),
        chunk.values.take(rows),
        pa.repeat(pa.scalar(tp.topic, pa.string()), len(rows)),
        pa.repeat(pa.scalar(tp.partition, pa.int32()), len(rows)),
        pa.array(offsets),
        pa.array(times * 1000).view(TIMESTAMP),
        pa.array(_kept(chunk.timestamp_types, mask)),
    ]
    if not include_headers:
        return pa.RecordBatch.from_arrays(columns, schema=WITHOUT_HEADERS)
    return pa.RecordBatch.from_arrays([*columns, _headers(tp, chunk, rows)], schema=WITH_HEADERS)


def regrouped(batches: Iterable[pa.RecordBatch], rows: int = ROWS, size: int = BYTES) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order, small batches joined and large ones cut.

    A batch that comes out has at most `rows` rows and, unless it is a single row, at most `size` bytes.
    """
    waiting: list[pa.RecordBatch] = []
    for batch in _cut(batches, rows, size):
        if sum(map(len, waiting)) + len(batch) > rows or sum(b.nbytes for b in waiting) + batch.nbytes > size:
            yield from _joined(waiting)
            waiting = []
        waiting.append(batch)
    yield from _joined(waiting)


def _joined(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if batches:
        yield pa.concat_batches(batches) if len(batches) > 1 else batches[0]  # a single one would be copied


def _cut(batches: Iterable[pa.RecordBatch], rows: int, size: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, len(batch), rows):
            yield from _halved(batch.slice(start, rows), size)


def _halved(batch: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    if len(batch) == 1 or batch.nbytes <= size:
        yield batch
        return
    middle = len(batch) // 2
    yield from _halved(batch.slice(0, middle), size)
    yield from _halved(batch.slice(middle), size)


def _kept(column: NDArray[Number], mask: Mask | None) -> NDArray[Number]:
    return column if mask is None else column[mask]


def _headers(tp: TopicPartition, chunk: Chunk, rows: Rows) -> pa.Array:
    try:
        return chunk.headers.take(rows)
    except ValueError as error:
        span = OffsetRange(int(chunk.offsets[0]), int(chunk.offsets[-1]) + 1)
        raise LogError(f"{tp} offsets {span}: the headers of a record cannot be read ({error})", UNREADABLE) from error


def _check_times(tp: TopicPartition, offsets: NDArray[np.int64], times_ms: NDArray[np.int64]) -> None:
    beyond = np.flatnonzero((times_ms > _LATEST_MS) | (times_ms < -_LATEST_MS))
    if len(beyond):
        raise LogError(
            f"{tp} offset {offsets[beyond[0]]} has the timestamp {times_ms[beyond[0]]} ms, beyond any Spark timestamp",
            "start behind that record, or have its producer write milliseconds since 1970",
        )
