"""What a task reads of one partition, piece by piece in offset order, and pieces of a useful size for a function.

Knows Arrow batches and offsets; nothing of their origin. Runs in executor workers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from spark_coop_source.arrow_output.record_batch import ENOUGH, ROWS
from spark_coop_source.select.hash_column import offsets_of
from spark_coop_source.task.acknowledging import Holes

FIRST_ROWS = 100
"""Records of the first piece: their cost is not known yet."""

_MOST_JOINED = 64  # reads without records of this task; then the task looks at its clock


class RecordsRead(NamedTuple):
    """Records of one partition, and the offset up to which all records of the task's slices were read."""

    records: pa.RecordBatch
    until: int
    holes: Holes | None = None  # without the column `acknowledgement`


@dataclass(slots=True)
class WorkPieces:
    """Pieces of such a size that a function works on one of them for a small part of the task's time."""

    share_ms: float  # of the task
    clock_ms: Callable[[], float]
    rows: int = FIRST_ROWS

    def of(self, reads: Iterator[RecordsRead]) -> Iterator[RecordsRead]:
        """The same records: small reads joined, large reads cut."""
        waiting = list[RecordsRead]()
        for read in reads:
            for piece in self._cut(read):
                waiting.append(piece)
                if len(waiting) == _MOST_JOINED or _large(waiting, self.rows):
                    yield from self._measured(_joined(waiting))
                    waiting = []
        if waiting:
            yield from self._measured(_joined(waiting))

    def _measured(self, piece: RecordsRead) -> Iterator[RecordsRead]:
        """One piece; then its size is fitted to the time that it took."""
        began = self.clock_ms()
        yield piece
        took = self.clock_ms() - began
        if took > self.share_ms / 20:
            self.rows = max(1, self.rows // 2)
        elif took < self.share_ms / 50 and len(piece.records) >= self.rows:
            self.rows = min(2 * self.rows, ROWS)

    def _cut(self, read: RecordsRead) -> Iterator[RecordsRead]:
        at = 0
        while len(read.records) - at > self.rows:
            rows = self.rows  # it may change while this piece is worked on
            yield RecordsRead(read.records.slice(at, rows), int(offsets_of(read.records.slice(at + rows, 1))[0]))
            at += rows
        yield RecordsRead(read.records.slice(at), read.until)


def _large(reads: list[RecordsRead], rows: int) -> bool:
    return sum(len(r.records) for r in reads) >= rows or sum(r.records.nbytes for r in reads) >= ENOUGH


def _joined(reads: list[RecordsRead]) -> RecordsRead:
    if len(reads) == 1:
        return reads[0]
    some = [r.records for r in reads if len(r.records)] or [reads[0].records]
    return RecordsRead(pa.concat_batches(some) if len(some) > 1 else some[0], reads[-1].until)
