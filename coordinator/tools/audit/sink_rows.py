"""Makes the columns of a sink from its parts: files, or batches of Arrow.

A part has arrays of equal length, or single numbers that hold for all its rows. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator.errors import SinkError
from coordinator.tools.audit.columns import UNKNOWN, NumberColumn, SinkColumns

Label = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class SinkPart:
    """Rows of one file, in their order."""

    partitions: NumberColumn
    offsets: NumberColumn
    batches: NumberColumn  # UNKNOWN where the sink names no batch
    queries: NumberColumn  # numbers of the queries' names
    task: int = UNKNOWN

    def __len__(self) -> int:
        return len(self.offsets)


def columns_of(parts: Sequence[SinkPart], queries: Sequence[str], label: Label = str) -> Mapping[int, SinkColumns]:
    """The columns of each Kafka partition. `parts` come in the order in which a batch's rows are read."""
    parts = [p for p in parts if len(p)]
    if not parts:
        return {}
    partitions, offsets, batches, of_query = (
        np.concatenate([getattr(p, name) for p in parts]) for name in ("partitions", "offsets", "batches", "queries")
    )
    files = np.repeat(np.arange(len(parts)), [len(p) for p in parts])
    tasks = np.array([p.task for p in parts], np.int64)
    codes, named, query = _coded(of_query, batches)
    labels = tuple(_label(queries, q, b, label) for q, b in zip(query.tolist(), named.tolist(), strict=True))
    found = {}
    one = partitions.min() == partitions.max()
    for partition in partitions[:1].tolist() if one else np.unique(partitions).tolist():
        rows = np.arange(len(partitions)) if one else np.flatnonzero(partitions == partition)
        if (np.diff(codes[rows]) < 0).any():
            rows = rows[np.argsort(codes[rows], kind="stable")]
        found[int(partition)] = SinkColumns(offsets[rows], codes[rows], files[rows], labels, query, tasks)
    return found


def _label(queries: Sequence[str], query: int, batch: int, label: Label) -> str:
    if batch == UNKNOWN:
        return ""
    return f"{queries[query]}/{label(batch)}" if len(queries) > 1 else label(batch)


def _coded(queries: NumberColumn, batches: NumberColumn) -> tuple[NumberColumn, NumberColumn, NumberColumn]:
    """A number for each (query, batch), ascending; and the batch and the query of each number.

    Few rows differ from the row before them, so only these are sorted.
    """
    new = np.ones(len(batches), np.bool_)
    new[1:] = (batches[1:] != batches[:-1]) | (queries[1:] != queries[:-1])
    runs = np.stack([queries[new], batches[new]])
    pairs, codes = np.unique(runs, axis=1, return_inverse=True)
    return codes.reshape(-1)[np.cumsum(new) - 1].astype(np.int64), pairs[1], pairs[0]


def numbers_of(column: pa.ChunkedArray, what: str, null: int | None = None) -> NumberColumn:
    """A column as numbers; nulls become `null`, or are an error. Without `to_numpy`, which would load pandas."""
    try:
        whole = pc.cast(column, pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise SinkError(f"{what} is of the type {column.type}, and holds other values than whole numbers") from None
    if whole.null_count:
        if null is None:
            raise SinkError(f"{what} holds {whole.null_count} nulls, so these rows name no record")
        whole = pc.fill_null(whole, null)
    parts = [np.frombuffer(c.buffers()[1], np.int64, len(c), c.offset * 8) for c in whole.chunks if len(c)]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def number_of(text: str | None, what: str, absent: int | None) -> int:
    """The number that a folder's name has for all rows; `absent` if there is none."""
    if text is None or text == "__HIVE_DEFAULT_PARTITION__":
        text = str(absent)
    try:
        return int(text)
    except ValueError:
        raise SinkError(f"{what} is {text!r}, not a whole number") from None


@dataclass(slots=True)
class Names:
    """Numbers of names, in the order in which they come."""

    found: dict[str, int]

    def number(self, name: str) -> int:
        """The number of a name."""
        return self.found.setdefault(name, len(self.found))

    def numbers(self, column: pa.ChunkedArray) -> NumberColumn:
        """The number of each row's name."""
        texts = pc.fill_null(pc.cast(column, pa.string()), "")
        if not len(texts):
            return np.zeros(0, np.int64)
        coded = texts.combine_chunks().dictionary_encode()
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        known = np.array([self.number(name) for name in coded.dictionary.to_pylist()], np.int64)
        return known[numbers_of(pa.chunked_array([coded.indices]), "a name")]
