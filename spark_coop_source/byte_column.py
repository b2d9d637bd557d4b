"""A column of byte strings that lie somewhere in one buffer; nothing is copied until rows are taken.

Knows Arrow's layout of binary arrays; nothing of Kafka.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Rows = NDArray[np.intp]

MOST_BYTES = np.iinfo(np.int32).max
"""Of a buffer: the offsets of an Arrow binary array have 32 bits."""


@dataclass(frozen=True, slots=True)
class ByteColumn:
    """Byte strings in the order of the buffer, none overlapping the next; a null one has no bytes."""

    buffer: bytes | pa.Buffer
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    nulls: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def size(self) -> int:
        """Bytes of all of them."""
        return int(self.lengths.sum())

    @classmethod
    def of(cls, entries: Sequence[bytes | None]) -> Self:
        """A column that holds copies of `entries`."""
        lengths = np.array([len(entry or b"") for entry in entries], np.int64)
        nulls = np.array([entry is None for entry in entries], np.bool_)
        return cls(b"".join(filter(None, entries)), np.cumsum(lengths) - lengths, lengths, nulls)

    def slice(self, start: int, stop: int) -> Self:
        """Some consecutive rows, over the same buffer."""
        span = slice(start, stop)
        return type(self)(self.buffer, self.starts[span], self.lengths[span], self.nulls[span])

    def take(self, rows: Rows) -> pa.Array:
        """Copies of the byte strings in `rows`, ascending row numbers, as an Arrow binary array."""
        if not len(rows):
            return pa.array([], pa.binary())
        # An Arrow array whose even entries are the strings wanted, the odd ones what lies between them.
        bounds = np.empty(2 * len(rows), np.int32)
        bounds[::2] = self.starts[rows]
        bounds[1::2] = bounds[::2] + self.lengths[rows]
        parts = [None, pa.py_buffer(bounds), pa.py_buffer(self.buffer)]
        every_byte = pa.BinaryArray.from_buffers(pa.binary(), len(bounds) - 1, parts)
        nulls = self.nulls[rows]
        even = pa.array(np.arange(0, len(bounds), 2, dtype=np.int32), mask=nulls if nulls.any() else None)
        return every_byte.take(even)
