"""Makes the Arrow batches that a task returns to Spark: Spark's Kafka columns, in batches of a useful size.

Knows the row schema of Spark's Kafka source; nothing of Kafka's client, lanes, or the meaning of offsets.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from coordinator.errors import LogError
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.decode.arrow_columns import numbers, repeated
from spark_coop_source.decode.byte_column import RowNumbers
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.header_column import HEADERS

ROWS = 20_000
"""The rows of a full batch: smaller batches are joined before they go to the JVM."""

BYTES = 16 * 1024 * 1024
"""The bytes of a full batch. One larger record is a batch of its own."""

ENOUGH = 1024 * 1024
"""A batch of this many bytes is not joined to others, because the join would copy it."""

_MOST_WAITING = 1_000  # batches: a batch of one row takes kilobytes

TIMESTAMP = pa.timestamp("us", tz="UTC")

EVERY = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", TIMESTAMP),
        ("timestampType", pa.int32()),
        ("headers", HEADERS),
    ]
)

UNREADABLE = "set includeHeaders=false, or start after that record; its producer wrote what Kafka's clients do not read"

_LATEST_MS = np.iinfo(np.int64).max // 1000


def to_arrow(tp: TopicPartition, chunk: Chunk, rows: RowNumbers | None, columns: Collection[str]) -> pa.RecordBatch:
    """The records of `chunk` in `rows` (None: all; in any order), as Spark's Kafka source shows them.

    The batch has the wanted columns in the source's order; other columns are not built. Rules of the source: times are
    in microseconds, -1 ms where a record has none; headers are null, not empty, where a record has none. Raises
    `LogError` for a time that Spark cannot store.
    """
    rows = np.arange(len(chunk)) if rows is None else rows
    made: Mapping[str, Callable[[], pa.Array]] = {
        "key": lambda: chunk.keys.take(rows),
        "value": lambda: chunk.values.take(rows),
        **_of_all(tp, len(rows)),
        "offset": lambda: numbers(chunk.offsets.take(rows)),
        "timestamp": lambda: _times(tp, chunk, rows),
        "timestampType": lambda: numbers(chunk.timestamp_types.take(rows)),
        "headers": lambda: _headers(tp, chunk, rows),
    }
    fields = [field for field in EVERY if field.name in columns]
    return pa.RecordBatch.from_arrays([made[field.name]() for field in fields], schema=pa.schema(fields))


def shared(columns: Collection[str]) -> pa.Schema:
    """The columns that tasks share: those that differ within a partition, and always the offset."""
    wanted = {*columns, "offset"} - {"topic", "partition"}
    return pa.schema([field for field in EVERY if field.name in wanted])


def completed(tp: TopicPartition, batch: pa.RecordBatch, columns: Collection[str]) -> pa.RecordBatch:
    """The rows of a batch of `shared(columns)`, with exactly these columns; first those of Spark's Kafka source."""
    made = _of_all(tp, len(batch))
    own = [field for field in batch.schema if field.name not in EVERY.names]
    fields = [field for field in (*EVERY, *own) if field.name in columns]
    arrays = [made[field.name]() if field.name in made else batch.column(field.name) for field in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def regrouped(batches: Iterable[pa.RecordBatch], rows: int = ROWS, size: int = BYTES) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order: small batches joined, large batches cut, the others unchanged.

    Each batch has at most `rows` rows and, unless it is a single row, at most `size` bytes.
    """
    waiting: list[pa.RecordBatch] = []
    rows_left, size_left = rows, size
    for batch, its_size in _cut(batches, rows, size):
        if len(batch) > rows_left or its_size > min(size_left, ENOUGH):
            yield from _joined(waiting)
            waiting, rows_left, size_left = [], rows, size
        if its_size > ENOUGH:
            yield batch
            continue
        waiting.append(batch)
        rows_left -= len(batch)
        size_left -= its_size
        if len(waiting) == _MOST_WAITING:
            waiting = list(_joined(waiting))
    yield from _joined(waiting)


def _joined(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if batches:
        yield pa.concat_batches(batches) if len(batches) > 1 else batches[0]  # it would copy a single batch


def _cut(batches: Iterable[pa.RecordBatch], rows: int, size: int) -> Iterator[tuple[pa.RecordBatch, int]]:
    for batch in batches:
        for start in range(0, len(batch), rows):
            yield from _halved(batch.slice(start, rows), size)


def _halved(batch: pa.RecordBatch, size: int) -> Iterator[tuple[pa.RecordBatch, int]]:
    """A batch in pieces of at most `size` bytes. Each comes with its size, because `nbytes` is slow."""
    its_size = batch.nbytes
    if len(batch) == 1 or its_size <= size:
        yield batch, its_size
        return
    middle = len(batch) // 2
    yield from _halved(batch.slice(0, middle), size)
    yield from _halved(batch.slice(middle), size)


def _of_all(tp: TopicPartition, count: int) -> Mapping[str, Callable[[], pa.Array]]:
    """The columns that are the same for all records of a partition."""
    return {
        "topic": lambda: repeated(tp.topic, count),
        "partition": lambda: numbers(np.full(count, tp.partition, np.int32)),
    }


def _headers(tp: TopicPartition, chunk: Chunk, rows: RowNumbers) -> pa.Array:
    try:
        return chunk.headers.take(rows)
    except ValueError as error:
        span = OffsetRange(int(chunk.offsets[0]), int(chunk.offsets[-1]) + 1)
        raise LogError(f"{tp} offsets {span}: the headers of a record cannot be read ({error})", UNREADABLE) from error


def _times(tp: TopicPartition, chunk: Chunk, rows: RowNumbers) -> pa.Array:
    times_ms = chunk.timestamps_ms.take(rows)
    beyond = np.flatnonzero((times_ms > _LATEST_MS) | (times_ms < -_LATEST_MS))
    if len(beyond):
        offset = chunk.offsets[rows[beyond[0]]]
        raise LogError(
            f"{tp} offset {offset} has the timestamp {times_ms[beyond[0]]} ms, beyond any Spark timestamp",
            "start after that record, or have its producer write milliseconds since 1970",
        )
    return numbers(times_ms * 1000).view(TIMESTAMP)
