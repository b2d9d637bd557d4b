"""The headers of many records, by their places in a batch. `take` reads them.

Knows how Kafka writes headers (a text key, and a value that may be null) and how Spark's source shows them.
"""

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
import pyarrow as pa
from kafka.record.util import decode_varint
from numpy.typing import NDArray

from spark_coop_source.decode.byte_column import ByteColumn, RowNumbers
from spark_coop_source.decode.decompression import Payload
from spark_coop_source.decode.varints import MORE_THAN_64_BITS, Places, varints

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

MOST_HEADERS = 100_000
"""Most headers of one record. Also the headers decoded at once, about 200 bytes of memory each."""

FEW = 32
"""Up to this many headers, one numpy step reads one header of many records. With more, a loop is faster."""

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Half of a UTF-16 pair: Java counts it as one error, Python as one for each byte. They count all else alike."""


@dataclass(frozen=True, slots=True)
class HeaderColumn:
    """For each record: the place of its first header, the number of headers, and the end of the record."""

    data: Payload
    places: Places
    counts: NDArray[np.int64]
    ends: Places

    def slice(self, start: int, stop: int) -> Self:
        """Some consecutive rows, over the same bytes."""
        span = slice(start, stop)
        return type(self)(self.data, self.places[span], self.counts[span], self.ends[span])

    def take(self, rows: RowNumbers) -> pa.Array:
        """The headers of `rows`, in any order, as `HEADERS`; null, not empty, where a record has none.

        Raises `ValueError` for headers that cannot be read.
        """
        counts = self.counts[rows]
        if not counts.any():
            return pa.nulls(len(rows), HEADERS)
        if (most := int(counts.max())) > MOST_HEADERS:
            raise ValueError(f"a record that declares {most} headers, more than {MOST_HEADERS}")
        cuts = np.searchsorted(np.cumsum(counts), np.arange(MOST_HEADERS, int(counts.sum()), MOST_HEADERS))
        parts = [part for part in np.split(rows, np.unique(cuts)) if len(part)]
        return pa.concat_arrays([self._taken_at_once(part) for part in parts])

    def _taken_at_once(self, rows: RowNumbers) -> pa.Array:
        counts = self.counts[rows]
        if not counts.any():
            return pa.nulls(len(rows), HEADERS)
        try:
            keys, values = self._keys_and_values(rows, counts)
        except IndexError as error:
            raise ValueError("a header reaches beyond the end of its batch") from error
        entries = pa.StructArray.from_arrays([_text(keys), values], fields=list(HEADERS.value_type))
        bounds = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        return pa.ListArray.from_arrays(bounds, entries, HEADERS, mask=pa.array(counts == 0))

    def _keys_and_values(self, rows: RowNumbers, counts: NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
        """All headers, record after record."""
        few = np.flatnonzero((counts > 0) & (counts <= FEW))
        steps = [*self._steps(rows, counts, few), *map(partial(self._walked, rows), np.flatnonzero(counts > FEW))]
        of_row, *columns = (np.concatenate(column) for column in zip(*steps, strict=True))
        in_order = np.argsort(of_row, kind="stable")
        key_at, key_lengths, value_at, value_lengths = (column[in_order] for column in columns)
        if (key_lengths < 0).any():
            raise ValueError("a header without a key")
        return self._taken(key_at, key_lengths), self._taken(value_at, value_lengths)

    def _steps(
        self, rows: RowNumbers, counts: NDArray[np.int64], left: RowNumbers
    ) -> Iterator[tuple[NDArray[np.int64], ...]]:
        """Places of key and value: of the first header of every record in `left`, then of the second, and so on."""
        wire = np.frombuffer(self.data, np.uint8)
        at = self.places[rows[left]]
        for step in range(1, int(counts[left].max(initial=0)) + 1):
            key_lengths, key_at = varints(wire, at)
            value_lengths, value_at = varints(wire, self._after(key_at, key_lengths))
            yield left, key_at, key_lengths, value_at, value_lengths
            at = self._after(value_at, value_lengths)
            done = counts[left] == step
            if (at[done] != self.ends[rows[left[done]]]).any():
                raise ValueError("the headers of a record end elsewhere than the record")
            left, at = left[~done], at[~done]

    def _walked(self, rows: RowNumbers, row: int) -> tuple[NDArray[np.int64], ...]:
        """The headers of one record, in order."""
        found = array("q")
        at, end = int(self.places[rows[row]]), int(self.ends[rows[row]])
        for _ in range(self.counts[rows[row]]):
            key_length, key_at = decode_varint(self.data, at)
            value_length, value_at = decode_varint(self.data, key_at + max(key_length, 0))
            at = value_at + max(value_length, 0)
            if at > end:
                break
            try:
                found.extend((key_at, key_length, value_at, value_length))
            except OverflowError as error:
                raise ValueError(MORE_THAN_64_BITS) from error
        if at != end:
            raise ValueError("the headers of a record end elsewhere than the record")
        columns = np.frombuffer(found, np.int64).reshape(-1, 4)
        return (np.full(len(columns), row), *columns.T)

    def _after(self, at: Places, lengths: NDArray[np.int64]) -> Places:
        if (lengths > len(self.data)).any():
            raise ValueError("a header is longer than its batch")
        return at + np.maximum(lengths, 0)

    def _taken(self, at: Places, lengths: NDArray[np.int64]) -> pa.Array:
        as_they_lie = np.argsort(at, kind="stable")
        lengths = lengths[as_they_lie]
        column = ByteColumn(self.data, at[as_they_lie], np.maximum(lengths, 0), lengths < 0)
        return column.take(np.argsort(as_they_lie))


def _text(keys: pa.Array) -> pa.Array:
    """Keys as Java's client reads them: bytes that are not UTF-8 become U+FFFD."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        valid = (_SURROGATE.sub("\ufffd".encode(), key) for key in keys.to_pylist())
        return pa.array([key.decode(errors="replace") for key in valid], pa.string())
