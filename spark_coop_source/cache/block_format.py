"""Record batches of one schema as bytes. Each batch can be read alone.

    places of the batches, one more than batches | batch | batch | ...      numbers in the machine's byte order

A batch is an Arrow message. A reader copies the bytes of its batch only, and decodes nothing. An empty batch takes no
bytes. Knows Arrow; nothing of files, nor of the content of batches.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Self

import numpy as np
import pyarrow as pa

_PLACE = np.dtype(np.int64)


@dataclass(frozen=True, slots=True)
class Packed:
    """The parts of a block to write, in order."""

    parts: Sequence[memoryview]

    @classmethod
    def of(cls, batches: Sequence[pa.RecordBatch]) -> Self:
        """The batches, copied to memory of their own; no bytes if all are empty."""
        if not any(map(len, batches)):
            return cls([])
        messages = [memoryview(batch.serialize() if len(batch) else b"") for batch in batches]
        first = (len(messages) + 1) * _PLACE.itemsize
        places = first + np.cumsum([0, *(message.nbytes for message in messages)], dtype=_PLACE)
        return cls([places.data, *messages])

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(part.nbytes for part in self.parts)

    def write(self, file: BinaryIO) -> None:
        """Write all parts."""
        file.writelines(self.parts)


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
