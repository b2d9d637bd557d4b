"""Cuts a batch of one partition for the user's function: into records of one slice, or of one key.

Knows Spark's columns, slices and key hashes; nothing of the calls of the function. Runs in executor workers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from coordinator.progress.slices import Slice
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.select.hash_column import hashes_of, offsets_of, without_hashes


@dataclass(frozen=True, slots=True)
class SliceBatch:
    """One record or more of a slice, in offset order."""

    records: pa.RecordBatch
    of: Slice
    key_hash: int | None  # None: of many keys
    ahead: bool = False  # before its key hash's turn
    whole: bool = True  # it begins with the first record of its key, or of its slice, in the batch that was read

    @property
    def key(self) -> bytes | None:
        """The key of the first record; in a batch that was cut by key, of all records."""
        key: bytes | None = self.records.column("key")[0].as_py()
        return key

    @property
    def first(self) -> int:
        """The offset of the first record."""
        return int(offsets_of(self.records)[0])

    def part(self, start: int, until: int | None = None) -> "SliceBatch":
        """Some of the records, by number; without `until` to the last one. Copies nothing."""
        length = len(self.records) if until is None else until
        whole = self.whole and start == 0
        return SliceBatch(self.records.slice(start, length - start), self.of, self.key_hash, whole=whole)

    def copied(self) -> "SliceBatch":
        """The same in memory of its own, so that the larger batch can be freed."""
        return SliceBatch(pa.concat_batches([self.records]), self.of, self.key_hash, whole=self.whole)

    def joined(self, later: "Sequence[SliceBatch]") -> "SliceBatch":
        """One batch of this batch and later batches of the same key."""
        if not later:
            return self
        records = pa.concat_batches([self.records, *(each.records for each in later)])
        return SliceBatch(records, self.of, self.key_hash, whole=self.whole)

    def __str__(self) -> str:
        """The record, or the first and the last record, and the hash of their key if they have one key."""
        offsets = self.records.column("offset")
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        key = "" if self.key_hash is None else f" (key hash {self.key_hash:016x})"
        if first == last:
            return f"{self.of.topic_partition} offset {first}{key}"
        return f"{self.of.topic_partition} offsets {OffsetRange(first, last + 1)}{key}"


class SliceTable:
    """The slices of one partition in one task, to look up the slice of a record."""

    def __init__(self, slices: Iterable[Slice]) -> None:
        self.slices = tuple(sorted(slices, key=lambda s: (s.hashes, s.offsets)))
        self._lanes, self._first = np.unique([s.hashes.lo for s in self.slices], return_index=True)

    def numbers(self, offsets: NDArray[np.int64], hashes: NDArray[np.int64]) -> NDArray[np.intp]:
        """For each record, the index of its slice in `slices`; each record must lie in one of them."""
        lanes = np.searchsorted(self._lanes, hashes, "right") - 1
        numbers: NDArray[np.intp] = self._first[lanes]
        ends = [*self._first[1:], len(self.slices)]
        for lane, (first, end) in enumerate(zip(self._first, ends, strict=True)):
            if end - first > 1:
                starts = [s.offsets.start for s in self.slices[first:end]]
                here = lanes == lane
                numbers[here] += np.searchsorted(starts, offsets[here], "right") - 1
        return numbers


Tables = dict[TopicPartition, SliceTable]


def tables(slices: Iterable[Slice]) -> Tables:
    """The slices of a task, partition by partition."""
    found: dict[TopicPartition, list[Slice]] = {}
    for s in slices:
        found.setdefault(s.topic_partition, []).append(s)
    return {tp: SliceTable(of_partition) for tp, of_partition in found.items()}


def partition_of(batch: pa.RecordBatch) -> TopicPartition:
    """The partition of a batch, which has at least one record of one partition."""
    return TopicPartition(batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py())


def by_slice(batch: pa.RecordBatch, table: SliceTable) -> Iterator[SliceBatch]:
    """The records of each slice. For a single slice it needs no hashes, and copies nothing."""
    if len(table.slices) == 1:
        yield SliceBatch(without_hashes(batch), table.slices[0], None)
        return
    numbers = table.numbers(offsets_of(batch), hashes_of(batch))
    order = np.argsort(numbers, kind="stable")
    ordered = without_hashes(batch).take(pa.array(order))
    for first, count in _runs(numbers[order]):
        yield SliceBatch(ordered.slice(first, count), table.slices[numbers[order[first]]], None)


def by_key(batch: pa.RecordBatch, table: SliceTable, *, ahead: int | None = 0) -> Iterator[SliceBatch]:
    """The records of each key, in the order of key hashes; each record without a key is alone.

    Ahead of this order come the keys of so many hashes, those with the most records; with None, of all. With many keys
    at once, the longest work then begins first. A batch belongs to the slice of its first record, even if its key's
    lane has further slices.
    """
    hashes, keys = hashes_of(batch), _key_numbers(batch.column("key"))
    order = np.argsort(keys, kind="stable")
    numbers = table.numbers(offsets_of(batch), hashes)[order]
    ordered = without_hashes(batch).take(pa.array(order))
    runs = [(int(hashes[order[first]]), first, count) for first, count in _runs(keys[order])]
    places = _places_ahead(runs, ahead)
    for key_hash, first, count in sorted(runs, key=lambda run: (places.get(run[0], len(places)), run[0])):
        yield SliceBatch(ordered.slice(first, count), table.slices[numbers[first]], key_hash, key_hash in places)


def _places_ahead(runs: Iterable[tuple[int, int, int]], most: int | None) -> dict[int, int]:
    """The hashes with the most records, each with its place. A batch of few hashes has none."""
    records = Counter[int]()
    for key_hash, _, count in runs:
        records[key_hash] += count
    if most is not None and len(records) <= most:
        return {}
    return {key_hash: place for place, (key_hash, _) in enumerate(records.most_common(most))}


def each_record(batch: pa.RecordBatch, table: SliceTable) -> Iterator[SliceBatch]:
    """One record after another, in offset order."""
    for number in range(len(batch)):
        yield from by_key(batch.slice(number, 1), table)


def _key_numbers(keys: pa.Array) -> NDArray[np.intp]:
    """Equal numbers for equal keys, an own number for each null. Hashes do not serve: different keys may share one."""
    found = keys.dictionary_encode()
    nulls = found.indices.is_null().to_numpy(zero_copy_only=False)
    numbers = np.frombuffer(found.indices.buffers()[1], np.int32, len(keys), found.indices.offset * 4)
    return np.where(nulls, len(found.dictionary) + np.arange(len(keys)), numbers)


def _runs(ordered: NDArray[np.intp]) -> list[tuple[int, int]]:
    """The start and the length of each run of equal entries."""
    firsts = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist()]
    return [(first, end - first) for first, end in zip(firsts, [*firsts[1:], len(ordered)], strict=True)]
