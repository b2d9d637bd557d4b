"""The drawings of the demo: a progress bar while the job runs, and the lanes of its rows."""

import bisect
import time
from collections.abc import Collection
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import job_output
from coordinator.values.key_hash import cuts, hash_record
from verdict import Delivery


class BatchProgress:
    """A progress bar over the rows of finished batches; `seconds` is the time from the first batch to the last."""

    def __init__(self, output: Path, rows: int, console: Console) -> None:
        columns = (BarColumn(), TaskProgressColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(TextColumn("{task.description}"), *columns, console=console)
        self._task = self._progress.add_task("Spark starts", total=rows)
        self._output = output
        self._rows: dict[Path, int] = {}
        self._began: float | None = None
        self.seconds = 0.0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self) -> None:
        """Show the finished rows."""
        if self._began is None and self._output.exists():
            self._began = time.monotonic()
        for batch in job_output.finished_batches(self._output):
            if batch not in self._rows:
                self._rows[batch] = job_output.row_count(batch)
                self.seconds = time.monotonic() - (self._began or 0.0)
                text = f"batch {job_output.batch_id(batch)}"
                self._progress.update(self._task, completed=sum(self._rows.values()), description=text)


def lane_table(received: Collection[Delivery], lanes: int) -> Table:
    """The rows by lane. The hash of the key decides which of `lanes` equal parts of the hash space a row belongs to."""
    table = Table("lane", "key hashes", title="Lanes of the partition", title_justify="left")
    for column in ("flights", "planes", "batches"):
        table.add_column(column, justify="right")
    ranges = cuts(lanes)
    starts = [each.lo for each in ranges]
    rows: list[list[Delivery]] = [[] for _ in ranges]
    for each in received:
        key = None if each.key is None else each.key.encode()
        rows[bisect.bisect(starts, hash_record(key, each.offset)) - 1].append(each)
    for lane, (hashes, its_rows) in enumerate(zip(ranges, rows, strict=True)):
        planes = len({each.key for each in its_rows} - {None})
        batches = len({each.batch for each in its_rows})
        table.add_row(str(lane), str(hashes), f"{len(its_rows):,}", f"{planes:,}", str(batches))
    return table
