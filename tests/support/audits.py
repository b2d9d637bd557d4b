"""Columns of an audit, from few words: a log of ten records with keys a, b, c, and the rows of a sink."""

from collections.abc import Iterable, Sequence

import numpy as np

from coordinator.tools.audit.columns import LogColumns, SinkColumns
from coordinator.tools.audit.sink_rows import SinkPart, columns_of
from coordinator.values.key_hash import hash_key

Row = tuple[int, int, int]
"""Batch, task, offset."""


def log_of(keys: str, first: int = 0, without: Iterable[int] = ()) -> LogColumns:
    """A record for each letter, from offset `first` on; `-` has no key. Offsets in `without` are no records."""
    found = [(first + n, key) for n, key in enumerate(keys) if first + n not in without]
    offsets = np.array([offset for offset, _ in found], np.int64)
    hashes = np.array([hash_key(key.encode() if key != "-" else b"\0%d" % at) for at, key in found], np.int64)
    return LogColumns(offsets, hashes, np.array([key != "-" for _, key in found], np.bool_))


def sink_of(rows: Sequence[Row], query: int = 0) -> SinkColumns:
    """The rows as they reached the sink: one file for each batch and task."""
    return columns_of(parts_of(rows, query), ["q"] if not query else ["q", "r"])[0]


def parts_of(rows: Sequence[Row], query: int = 0) -> list[SinkPart]:
    """A part for each batch and task, in the order of their first rows."""
    files = dict.fromkeys((batch, task) for batch, task, _ in rows)
    return [_part(batch, task, [o for b, t, o in rows if (b, t) == (batch, task)], query) for batch, task in files]


def _part(batch: int, task: int, offsets: Sequence[int], query: int) -> SinkPart:
    ones = np.ones(len(offsets), np.int64)
    return SinkPart(0 * ones, np.array(offsets, np.int64), batch * ones, query * ones, task)
