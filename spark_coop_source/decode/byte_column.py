"""A column of byte strings inside one buffer. `take` copies rows; nothing else does.

Knows Arrow's layout of binary arrays; nothing of Kafka.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_coop_source.decode.arrow_columns import numbers
from spark_coop_source.decode.decompression import Payload

RowNumbers = NDArray[np.intp]
NumberArray = NDArray[np.signedinteger]

MOST_BYTES = np.iinfo(np.int32).max
"""Most bytes of a buffer: the offsets of an Arrow binary array have 32 bits."""


@dataclass(frozen=True, slots=True)
class ByteColumn:
    """Byte strings in the order of the buffer, without overlaps; a null string has no bytes."""

    buffer: Payload | pa.Buffer
    starts: NumberArray
    lengths: NumberArray
    nulls: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def size(self) -> int:
        """Bytes of all strings."""
        return int(self.lengths.sum())

    @classmethod
    def of(cls, entries: Sequence[bytes | None]) -> Self:
        """A column that holds copies of `entries`."""
        lengths = np.array([len(entry or b"") for entry in entries], np.int64)
        nulls = np.array([entry is None for entry in entries], np.bool_)
        return cls(b"".join(filter(None, entries)), np.cumsum(lengths) - lengths, lengths, nulls)

    @classmethod
    def over(cls, array: pa.Array) -> Self:
        """An Arrow binary array as a column, over its buffer."""
        valid, offsets, data = array.buffers()
        nulls = np.zeros(len(array), np.bool_)
        if valid is not None:  # Arrow's `to_numpy` would load pandas
            bits = np.unpackbits(np.frombuffer(valid, np.uint8), count=array.offset + len(array), bitorder="little")
            nulls = bits[array.offset :] == 0
        bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
        return cls(data or b"", bounds[:-1], np.where(nulls, 0, np.diff(bounds)), nulls)

    def slice(self, start: int, stop: int) -> Self:
        """Some consecutive rows, over the same buffer."""
        span = slice(start, stop)
        return type(self)(self.buffer, self.starts[span], self.lengths[span], self.nulls[span])

    def take(self, rows: RowNumbers) -> pa.Array:
        """Copies of the byte strings in `rows`, row numbers in any order, as an Arrow binary array."""
        if not len(rows):
            return pa.nulls(0, pa.binary())
        nulls = self.nulls[rows]
        even = numbers((2 * rows).astype(np.int32), nulls if nulls.any() else None)
        return self._with_gaps().take(even)

    def _with_gaps(self) -> pa.Array:
        """An Arrow array: even entries are the strings, odd entries are the bytes between them."""
        bounds = np.empty(2 * len(self), np.int32)
        bounds[::2] = self.starts
        bounds[1::2] = bounds[::2] + self.lengths
        parts = [None, pa.py_buffer(bounds), pa.py_buffer(self.buffer)]
        return pa.BinaryArray.from_buffers(pa.binary(), len(bounds) - 1, parts)
