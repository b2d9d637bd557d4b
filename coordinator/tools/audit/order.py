"""Finds rows that reached a sink after a later record of their key (rule: key-order). Pure.

    rows by query and key, in the order of the sink           #  a row      offset 7 4 9
    batches              |--0--|---1---|--2--|                a row is out of order if its offset is lower than
    files in a batch           |-a-|-b-|                      - one of an earlier batch of its query, or
                                                              - one before it in its file
    tasks of a batch           |-1-|-2-|                      a key in two tasks of a batch has no order at all

Only first deliveries count: a repeat is no disorder. Batch ids of two queries do not compare.
"""

from dataclasses import dataclass

import numpy as np

from coordinator.tools.audit.columns import UNKNOWN, MaskColumn, NumberColumn, SinkColumns


@dataclass(frozen=True, slots=True)
class Disorder:
    """Rows out of order: for each its row in the sink, and the row that came too early; UNKNOWN for two tasks."""

    rows: NumberColumn
    before: NumberColumn


def disorder(sink: SinkColumns, rows: NumberColumn, hashes: NumberColumn, ranks: NumberColumn) -> Disorder:
    """The rows out of order among `rows`, which ascend; each has a key hash, and the rank of its offset.

    To sort all rows by key takes most of the time of an audit. So only keys with a suspicious row are sorted.
    """
    suspects = np.unique(hashes[_suspicious(sink, rows, hashes, ranks)])
    if len(suspects):
        near = np.minimum(np.searchsorted(suspects, hashes), len(suspects) - 1)
        chosen = np.flatnonzero(suspects[near] == hashes)
        return _disorder(sink, rows[chosen], hashes[chosen], ranks[chosen])
    none = np.zeros(0, np.int64)
    return Disorder(none, none)


def _suspicious(sink: SinkColumns, rows: NumberColumn, hashes: NumberColumn, ranks: NumberColumn) -> MaskColumn:
    """A mask with every row that may be out of order, whatever the keys are."""
    mask = np.zeros(len(rows), np.bool_)
    if not len(rows):
        return mask
    batches, files = sink.batches[rows], sink.files[rows]
    first_of_batch = np.flatnonzero(_changes(batches))
    first_of_file = np.flatnonzero(_changes(batches) | _changes(files))
    highest = int(ranks.max()) + 1
    base = sink.queries[batches[first_of_batch]] * highest
    tops = np.maximum.accumulate(base + np.maximum.reduceat(ranks, first_of_batch))
    earlier = np.concatenate([[UNKNOWN], tops[:-1]]) - base
    sizes = np.diff(np.append(first_of_batch, len(rows)))
    mask |= ranks < np.repeat(earlier, sizes)
    falls = np.flatnonzero(ranks[1:] < ranks[:-1]) + 1
    if len(np.setdiff1d(falls, first_of_file)):
        new_file = np.zeros(len(rows), np.bool_)
        new_file[first_of_file] = True
        mask |= _before(new_file, np.ones(len(rows), np.bool_), ranks, highest) > ranks
    for start, size in zip(first_of_batch.tolist(), sizes.tolist(), strict=True):
        own = first_of_file[slice(*np.searchsorted(first_of_file, [start, start + size]))]
        mask[start : start + size] |= _share_hashes(hashes[start : start + size], own - start, sink.tasks[files[own]])
    return mask


def _share_hashes(hashes: NumberColumn, firsts: NumberColumn, tasks: NumberColumn) -> bool:
    """Whether two tasks of a batch may have the same key: the hash ranges of their files overlap."""
    if tasks.min() == tasks.max():
        return False
    los, his = np.minimum.reduceat(hashes, firsts), np.maximum.reduceat(hashes, firsts)
    order = np.argsort(los, kind="stable")
    los, tops = los[order], np.maximum.accumulate(his[order])
    return bool((los[1:] <= tops[:-1]).any())


def _disorder(sink: SinkColumns, rows: NumberColumn, hashes: NumberColumn, ranks: NumberColumn) -> Disorder:
    queries = sink.queries[sink.batches[rows]]
    by_key = np.argsort(hashes, kind="stable")
    new_query = np.zeros(len(rows), np.bool_)
    if queries.min() != queries.max():
        by_key = np.lexsort((hashes, queries))
        new_query = _changes(queries[by_key])
    rows, hashes, ranks = rows[by_key], hashes[by_key], ranks[by_key]
    batches, files = sink.batches[rows], sink.files[rows]
    new_key = _changes(hashes) | new_query
    new_batch = new_key | _changes(batches)
    new_file = new_batch | _changes(files)
    highest = int(ranks.max()) + 1
    earlier = _before(new_key, new_batch, ranks, highest)
    in_file = _before(new_file, np.ones(len(rows), np.bool_), ranks, highest)
    top = np.maximum(earlier, in_file)
    wrong = np.flatnonzero((top > ranks) | _parallel(new_batch, sink.tasks[files]))
    row_of = np.full(highest, UNKNOWN, np.int64)
    row_of[ranks] = rows
    late = top[wrong] > ranks[wrong]
    before = np.where(late, row_of[top[wrong]], UNKNOWN)
    in_sink = np.argsort(rows[wrong], kind="stable")
    return Disorder(rows[wrong][in_sink], before[in_sink])


def _changes(values: NumberColumn) -> MaskColumn:
    """Where a value differs from the one before it; the first does."""
    changed = np.ones(len(values), np.bool_)
    changed[1:] = values[1:] != values[:-1]
    return changed


def _before(new_group: MaskColumn, new_part: MaskColumn, ranks: NumberColumn, highest: int) -> NumberColumn:
    """For each row, the highest rank in the earlier parts of its group; UNKNOWN if there is none."""
    base = (np.cumsum(new_group) - 1) * highest
    so_far = np.maximum.accumulate(base + ranks)
    part = np.maximum.accumulate(np.where(new_part, np.arange(len(ranks)), 0))
    found: NumberColumn = so_far[np.maximum(part - 1, 0)] - base
    found[(part == 0) | (found < 0)] = UNKNOWN
    return found


def _parallel(new_batch: MaskColumn, tasks: NumberColumn) -> MaskColumn:
    """Rows whose key another task of the batch has too, except those of the first task."""
    first = tasks[np.maximum.accumulate(np.where(new_batch, np.arange(len(tasks)), 0))]
    found: MaskColumn = (tasks != first) & (tasks != UNKNOWN) & (first != UNKNOWN)
    return found
