"""Applies a record filter to the rows of a chunk, before any value is copied into a column.

    chunk      places of keys, values and headers over one buffer; the sizes of all records
    hashes     used only where the filter has key ranges or keys
    keys       copied and compared only where the hash is that of a key in the list

Knows chunks, hashes and the filter; nothing of slices. `coordinator.values.record_filter` defines the result.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator.values.ranges import OFFSET_MAX, WHOLE
from coordinator.values.record_filter import Key, RecordFilter
from spark_coop_source.decode.byte_column import ByteColumn, RowNumbers
from spark_coop_source.select.chosen import Chosen, Hashed, RowMask
from spark_coop_source.select.hashing import HashArray, hash_records


class Filtering:
    """A filter, prepared for many chunks."""

    def __init__(self, of: RecordFilter) -> None:
        self._sizes = None if (of.least_bytes, of.most_bytes) == (0, OFFSET_MAX) else (of.least_bytes, of.most_bytes)
        self._los, self._his = np.array(of.ranges, np.int64).T
        self._ranged = of.ranges != (WHOLE,)
        self._allow = None if of.allow is None else _Keys(of.allow)
        self._deny = _Keys(of.deny) if of.deny else None

    def chosen(self, of: Hashed, rows: RowNumbers) -> Chosen:
        """Those of the rows that the filter keeps, in their order."""
        kept = self.kept(of)
        left = rows[kept[rows]]
        return Chosen(of, kept, left, len(rows) - len(left))

    def kept(self, of: Hashed) -> RowMask:
        """Whether each record of the chunk is handed over."""
        chunk = of.chunk
        mask = np.ones(len(chunk), np.bool_)
        if self._sizes:
            sizes = chunk.keys.lengths + chunk.values.lengths
            mask &= (self._sizes[0] <= sizes) & (sizes <= self._sizes[1])
        if not (self._ranged or self._allow or self._deny):
            return mask
        hashes = of.hashes
        if self._ranged:
            mask &= hashes <= self._his[np.searchsorted(self._los, hashes, "right") - 1]
            mask &= self._los[0] <= hashes
        if self._allow:
            mask &= self._allow.named(chunk.keys, hashes)
        if self._deny:
            mask &= ~self._deny.named(chunk.keys, hashes)
        return mask


class _Keys:
    """A set of keys: by hash first, then by comparison, because two keys may have one hash."""

    def __init__(self, keys: frozenset[Key]) -> None:
        named = sorted(key for key in keys if key is not None)
        self._null = None in keys
        self._values = pa.array(named, pa.binary())
        self._hashes = np.unique(hash_records(ByteColumn.of(named), np.zeros(len(named), np.int64)))

    def named(self, keys: ByteColumn, hashes: HashArray) -> RowMask:
        """Whether each of the keys is in the set."""
        mask = keys.nulls.copy() if self._null else np.zeros(len(keys), np.bool_)
        if len(self._hashes):
            nearest = self._hashes[np.searchsorted(self._hashes[1:], hashes, "right")]
            likely = np.flatnonzero((nearest == hashes) & ~keys.nulls)
            mask[likely] = _booleans(pc.is_in(keys.take(likely), value_set=self._values))
        return mask


def _booleans(column: pa.BooleanArray) -> RowMask:
    """A new column without nulls; Arrow's `to_numpy` would load pandas."""
    bits = np.frombuffer(column.buffers()[1] or b"", np.uint8)
    return np.unpackbits(bits, count=len(column), bitorder="little").view(np.bool_)
