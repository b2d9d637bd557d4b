"""The headers of many records, where they lie in a batch; read only when rows are taken.

Knows how Kafka writes headers (a key, which is text, and a value, which may be null) and how Spark's
source shows them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_coop_source.decode.byte_column import ByteColumn, Rows
from spark_coop_source.decode.varints import Places, varints

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Half of a pair of UTF-16: Java takes it for one mistake, Python for one a byte; all else they count alike."""


@dataclass(frozen=True, slots=True)
class HeaderColumn:
    """For each record the place of its first header, how many there are, and where the record ends."""

    data: bytes
    places: Places
    counts: NDArray[np.int64]
    ends: Places

    def slice(self, start: int, stop: int) -> Self:
        """Some consecutive rows, over the same bytes."""
        span = slice(start, stop)
        return type(self)(self.data, self.places[span], self.counts[span], self.ends[span])

    def take(self, rows: Rows) -> pa.Array:
        """The headers of `rows`, in any order, as `HEADERS`; null, not empty, where a record has none.

        Raises `ValueError` if they cannot be read.
        """
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

    def _keys_and_values(self, rows: Rows, counts: NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
        """All headers, record after record."""
        steps = list(self._steps(rows, counts))
        of_row, *columns = (np.concatenate(column) for column in zip(*steps, strict=True))
        in_order = np.argsort(of_row, kind="stable")
        key_at, key_lengths, value_at, value_lengths = (column[in_order] for column in columns)
        if (key_lengths < 0).any():
            raise ValueError("a header without a key")
        return self._taken(key_at, key_lengths), self._taken(value_at, value_lengths)

    def _steps(self, rows: Rows, counts: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], ...]]:
        """The first header of every record that has one, then the second ..., where key and value lie."""
        wire = np.frombuffer(self.data, np.uint8)
        left = np.flatnonzero(counts)
        at = self.places[rows[left]]
        for step in range(1, int(counts.max()) + 1):
            key_lengths, key_at = varints(wire, at)
            value_lengths, value_at = varints(wire, self._after(key_at, key_lengths))
            yield left, key_at, key_lengths, value_at, value_lengths
            at = self._after(value_at, value_lengths)
            done = counts[left] == step
            if (at[done] != self.ends[rows[left[done]]]).any():
                raise ValueError("the headers of a record end elsewhere than the record")
            left, at = left[~done], at[~done]

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
    """Keys as Java's client reads them: what is not UTF-8 becomes U+FFFD."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        valid = (_SURROGATE.sub("\ufffd".encode(), key) for key in keys.to_pylist())
        return pa.array([key.decode(errors="replace") for key in valid], pa.string())
