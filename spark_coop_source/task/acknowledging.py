"""Makes the column `acknowledgement` of one partition, chunk by chunk in offset order.

    offsets    99  100 ... 110 ... 121
    a strip     x   o   o   x   o   x      x: a record of the strip   o: none (see below)
    covers     |-| |---------| |-----|     of the three acknowledgements

Holes, markers, records of other hashes and filtered records are no records of the strip. A strip is of one task. It may
hold records that the task no longer reads: an earlier attempt ended some lanes before. They count all the same, since
a chunk has all records of the log between its first and its last. Runs in executor workers.

    offsets    ... 121 ... 129 | end of reading: `Holes`
    a strip         x   o   o            the last row of the partition covers 122-129, too
    another     o   o   o   o            and in a strip without a record all of its offsets
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from coordinator.progress.acknowledgement import Strip, check_of
from coordinator.values.ranges import OffsetRange, Offsets
from spark_coop_source.arrow_output.schema import ACKNOWLEDGEMENT
from spark_coop_source.decode.arrow_columns import numbers, repeated
from spark_coop_source.select.chosen import Chosen, RowMask
from spark_coop_source.select.hashing import HashArray

_Numbers = NDArray[np.int64]


class Holes(NamedTuple):
    """The offsets behind the last record of each strip, once a task has read its records before an offset."""

    strips: Sequence[Strip]
    starts: _Numbers  # the offset after the strip's last record; its first offset if it has no record
    ends: _Numbers  # of its reading

    def before(self, until: int) -> Iterator[tuple[str, OffsetRange]]:
        """The holes before an offset, each with the head of its strip."""
        ends = np.minimum(self.ends, until)
        for n in np.flatnonzero(self.starts < ends).tolist():
            yield self.strips[n].head, OffsetRange(int(self.starts[n]), int(ends[n]))


class Acknowledging:
    """The texts of one partition's rows. It must see each chunk of the task, one after another.

    `read`: the stretches of offsets that the task reads. They may end before its strips.
    """

    def __init__(self, strips: Sequence[Strip], read: Offsets) -> None:
        self._strips = strips
        self._areas = [strip.area for strip in strips]
        self._starts = np.array([area.offsets.start for area in self._areas], np.int64)
        self._untils = np.array([_end(area.offsets, read) for area in self._areas], np.int64)
        self._heads = pa.concat_arrays([repeated(strip.head, 1) for strip in strips])
        self._sums = np.array([crc32(strip.head.encode()) for strip in strips], np.uint64)
        self._next = self._starts.copy()  # the offset after the last record of each strip

    def added(self, batch: pa.RecordBatch, chosen: Chosen) -> pa.RecordBatch:
        """The batch of the chosen records, and their texts."""
        offsets, rows = chosen.of.chunk.offsets, chosen.rows
        strips, since = self.covered(offsets, chosen.of.hashes, chosen.kept)
        return batch.append_column(ACKNOWLEDGEMENT, self.texts(strips[rows], since[rows], offsets[rows]))

    def covered(self, offsets: _Numbers, hashes: HashArray, kept: RowMask) -> tuple[_Numbers, _Numbers]:
        """The strip of each record (-1: none), and the first offset that it covers. The filter drops all but `kept`."""
        strips, since = np.full(len(offsets), -1, np.int64), np.zeros(len(offsets), np.int64)
        firsts, ends = np.searchsorted(offsets, self._starts), np.searchsorted(offsets, self._untils)
        for number in np.flatnonzero(firsts < ends).tolist():  # strips without records of the chunk cost nothing
            near, area = slice(int(firsts[number]), int(ends[number])), self._areas[number]
            inside = kept[near] & (area.hashes.lo <= hashes[near]) & (hashes[near] <= area.hashes.hi)
            of_strip = np.flatnonzero(inside) + firsts[number]
            if len(of_strip):
                after = offsets[of_strip] + 1
                strips[of_strip], since[of_strip] = number, np.concatenate([[self._next[number]], after[:-1]])
                self._next[number] = after[-1]
        return strips, since

    @property
    def holes(self) -> Holes:
        """The holes behind the last records so far. A thread may work ahead, so this does not change later."""
        return Holes(self._strips, self._next.copy(), self._untils)

    def texts(self, strips: _Numbers, since: _Numbers, last: _Numbers) -> pa.Array:
        """The texts of records that lie in strips."""
        checks = check_of(self._sums[strips], since.view(np.uint64), last.view(np.uint64))
        parts = (pc.cast(numbers(each), pa.string()) for each in (since, last, checks.view(np.int64)))
        return pc.binary_join_element_wise(self._heads.take(numbers(strips)), *parts, repeated("/", len(strips)))


def _end(strip: OffsetRange, read: Offsets) -> int:
    """The end of the stretch in which a strip begins, or of the strip."""
    at = bisect_right(read, strip.start, key=lambda r: r.start) - 1
    return min(strip.until, read[at].until) if at >= 0 else strip.start
