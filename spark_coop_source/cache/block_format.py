"""Record batches of one schema as bytes, each of which can be read alone.

    places of the batches, one more than there are | batch | batch | ...      numbers are the machine's own

A batch is a message of Arrow's, so that whoever reads one copies its bytes and no others, and decodes nothing.
An empty one takes none. Knows Arrow; nothing of files, nor of what the batches hold.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Self

import numpy as np
import pyarrow as pa

_PLACE = np.dtype(np.int64)


@dataclass(frozen=True, slots=True)
class Packed:
    """What is to be written, part after part."""

    parts: Sequence[memoryview]

    @classmethod
    def of(cls, batches: Sequence[pa.RecordBatch]) -> Self:
        """The batches, in memory of their own; nothing at all if they are all empty."""
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
        """Write them all."""
        file.writelines(self.parts)


def unpacked(
    read: Callable[[int, int], bytes], wanted: Iterable[int], schema: pa.Schema
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Those of the `wanted` batches (by number, from 0) that are not empty, each with its number.

    `read` gives so many bytes from a place on. Raises `ValueError` or Arrow's errors for what `Packed` has not written.
    """
    for number in wanted:
        start, until = np.frombuffer(read(number * _PLACE.itemsize, 2 * _PLACE.itemsize), _PLACE).tolist()
        if not 0 < start <= until:
            raise ValueError(f"batch {number} lies from {start} to {until}")
        if start < until:
            yield number, pa.ipc.read_record_batch(pa.py_buffer(read(start, until - start)), schema)
