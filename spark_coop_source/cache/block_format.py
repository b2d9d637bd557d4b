"""Record batches of one schema as bytes. Each batch can be read alone.

    places of the batches, one more than batches | schema | batch | batch | ... | end

Places are numbers in the machine's byte order. From the schema on, it is a stream of Arrow messages without the empty
batches. A reader copies the bytes of its batch only, and decodes nothing. Knows Arrow; nothing of files, nor of the
content of batches.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_PLACE = np.dtype(np.int64)
_END_BYTES = 8


@dataclass(frozen=True, slots=True)
class Packed:
    """Batches to write, and their places in the block; no batches if all are empty."""

    batches: Sequence[pa.RecordBatch]
    places: NDArray[np.int64]

    @classmethod
    def of(cls, batches: Sequence[pa.RecordBatch]) -> Self:
        """The places of these batches, of which nothing is copied."""
        sizes = [pa.ipc.get_record_batch_size(batch) if len(batch) else 0 for batch in batches]
        if not any(sizes):
            return cls((), np.zeros(1, _PLACE))
        first = (len(sizes) + 1) * _PLACE.itemsize + batches[0].schema.serialize().size
        return cls(batches, first + np.cumsum([0, *sizes], dtype=_PLACE))

    @property
    def size(self) -> int:
        """Bytes of the block."""
        return int(self.places[-1]) + _END_BYTES if self.batches else 0

    def write(self, file: BinaryIO) -> None:
        """Write the block: each column from its own memory."""
        if not self.batches:
            return
        file.write(self.places.data)
        with pa.ipc.new_stream(
            pa.PythonFile(file, "w"), self.batches[0].schema, options=pa.ipc.IpcWriteOptions()
        ) as stream:
            for batch in filter(len, self.batches):
                stream.write_batch(batch)


def unpacked(
    read: Callable[[int, int], bytes], wanted: Iterable[int], schema: pa.Schema
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The `wanted` batches (by number, from 0) that are not empty, each with its number.

    `read` returns bytes by place and size. Raises `ValueError` or Arrow's errors for bytes that `Packed` did not write.
    """
    for number in wanted:
        start, until = np.frombuffer(read(number * _PLACE.itemsize, 2 * _PLACE.itemsize), _PLACE).tolist()
        if not 0 < start <= until:
            raise ValueError(f"batch {number} lies from {start} to {until}")
        if start < until:
            yield number, pa.ipc.read_record_batch(pa.py_buffer(read(start, until - start)), schema)
