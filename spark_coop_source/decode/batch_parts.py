"""Splits a large record batch: decodes some of its records at a time.

    blocks    |-------|-------|-------|-------|
    records   |a--|b-------|c---|d-----------|        a and b are a part, c is one, d another

So memory contains one part, or one record that is larger: no record is cut. Knows the end and the offset of a record;
nothing of the rest of it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from kafka.record.util import decode_varint

from spark_coop_source.decode.decompression import Blocks, Payload
from spark_coop_source.decode.record_places import size_of, whole
from spark_coop_source.decode.varints import Places

HEAD_BYTES = 32
"""Bytes needed to read the length and the offset of a record: a byte and three varints."""

LONGEST = 2**31 - 1
"""Most bytes of a record: Kafka's lengths have 32 bits."""


@dataclass(frozen=True, slots=True)
class BatchPart:
    """Consecutive records: the places where they begin in `data`, which may contain more."""

    data: Payload
    places: Places


class BatchParts:
    """The records of one batch, read from `blocks` as they are needed.

    For a record of more than `largest` bytes it calls `too_large` with offset delta and size. If that does not raise,
    it skips the record. Raises `ValueError` if the records do not end with the last block.
    """

    def __init__(self, blocks: Blocks, count: int, largest: int, too_large: Callable[[int, int], None]) -> None:
        self._blocks = blocks
        self._left = count
        self._largest = largest
        self._too_large = too_large
        self._data: Payload = b""
        self._at = 0
        self._need = 0  # bytes of the next record, if it is larger than a part

    def of(self, rows: int, size: int) -> Iterator[BatchPart]:
        """All records, in parts of at most `rows` records and, unless it is a single record, about `size` bytes."""
        while self._left > 0:
            until = min(len(self._data), self._at + max(size, self._need))
            found, end = whole(self._data, self._at, until, min(self._left, rows))
            if found:
                places = np.concatenate(found)
                yield BatchPart(self._data, places)
                self._at, self._left, self._need = end, self._left - len(places), 0
            else:
                self._refill(size)
        if self._at != len(self._data) or any(len(block) for block in self._blocks):
            raise ValueError("there is more in the batch than its records")

    def _refill(self, size: int) -> None:
        """Go to the next readable record, and buffer all of it."""
        self._hold(HEAD_BYTES)
        need = size_of(self._data, self._at)
        if need <= self._largest:
            self._need = need
            self._hold(max(size, need))
            if len(self._data) - self._at < need:
                raise ValueError("a record reaches beyond the end of its batch")
        elif need > LONGEST:
            raise ValueError(f"a record of {need} bytes")
        else:
            self._too_large(_offset_delta(self._data, self._at), need)
            self._skip(need)
            self._left -= 1

    def _hold(self, size: int) -> None:
        """Buffer `size` bytes from the next record on, or the rest."""
        if len(self._data) - self._at >= size:
            return
        held = bytearray(memoryview(self._data)[self._at :])
        self._data, self._at = held, 0
        while len(held) < size and (block := next(self._blocks, None)) is not None:
            held += block

    def _skip(self, size: int) -> None:
        for block in chain((memoryview(self._data)[self._at :],), self._blocks):
            if len(block) > size:
                self._data, self._at = block, size
                return
            size -= len(block)
        if size:
            raise ValueError("a record reaches beyond the end of its batch")
        self._data, self._at = b"", 0


def _offset_delta(data: Payload, at: int) -> int:
    _, at = decode_varint(data, at)
    _, at = decode_varint(data, at + 1)
    return int(decode_varint(data, at)[0])
