"""What tasks report of the batch under way: the one object that both threads of a reader process change.

    heartbeat thread    receive(costs), under_way()
    main thread         begin(end, tasks) as a batch is handed out, receive(costs), end() once it is in the sink

Each call holds the lock, `receive` also while it takes the reports from where they arrived: so an older report never
replaces a newer one. A report of another batch's slice is no work under way.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from threading import Lock

from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.telemetry import SliceCost

Reports = dict[Slice, SliceCost]


class Inbox:
    """The latest report of each slice of the batch under way."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._reports: Reports = {}
        self._batch: list[tuple[StreamOffset, Sequence[Sequence[Slice]]]] = []  # the one under way, if there is one

    def begin(self, end: StreamOffset, tasks: Sequence[Sequence[Slice]]) -> None:
        """The batch that ends at `end` is handed out as these tasks; nothing changes if it was before."""
        with self._lock:
            if not any(known == end for known, _ in self._batch):
                self._batch[:] = [(end, tasks)]
                self._reports.clear()

    def receive(self, costs: Iterable[SliceCost]) -> None:
        """Store reports, the latest last; an iterator is read while the lock is held."""
        with self._lock:
            latest = {cost.slice: cost for cost in costs}
            if self._batch:
                self._reports.update(latest)

    def end(self) -> Reports:
        """The batch has ended: all that was reported of it."""
        with self._lock:
            reports = dict(self._reports)
            self._reports.clear()
            self._batch.clear()
            return reports

    def under_way(self) -> tuple[Slice, ...]:
        """Slices, or a key of one, that were begun and have not ended, ascending."""
        with self._lock:
            begun = [cost for cost in self._reports.values() if not cost.finished]
            tasks = chain.from_iterable(tasks for _, tasks in self._batch) if begun else ()
            ours = frozenset(chain.from_iterable(tasks))
            return tuple(sorted(cost.under_way for cost in begun if cost.slice in ours))
