"""The key hash as a column of an Arrow batch, so that a task hashes each record once.

`readings` adds the column. The meter and the cuts for the user's function read it, and the cuts drop it. Neither the
function nor Spark sees it. Knows Arrow's batches; nothing of slices.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_coop_source.decode.arrow_columns import numbers
from spark_coop_source.decode.byte_column import ByteColumn
from spark_coop_source.select.hashing import hash_records

HASH = pa.field("keyHash", pa.int64())


def with_hashes(batch: pa.RecordBatch, hashes: NDArray[np.int64]) -> pa.RecordBatch:
    """The batch and the key hash of each of its rows."""
    return batch.append_column(HASH, numbers(hashes))


def without_hashes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch as users know it."""
    return batch.drop_columns([HASH.name]) if HASH.name in batch.schema.names else batch


def hashes_of(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """The key hash of each record: the column, or computed from key and offset where there is no such column."""
    if HASH.name in batch.schema.names:
        return _values(batch.column(HASH.name))
    return hash_records(ByteColumn.over(batch.column("key")), offsets_of(batch))


def offsets_of(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """The offsets of a batch."""
    return _values(batch.column("offset"))


def _values(column: pa.Array) -> NDArray[np.int64]:
    """A column of 64-bit numbers without nulls, over its memory; Arrow's `to_numpy` would load pandas."""
    return np.frombuffer(column.buffers()[1] or b"", np.int64, len(column), column.offset * 8)
