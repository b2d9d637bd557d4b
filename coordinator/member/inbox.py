"""Reports of tasks on the batch under way. Both threads of a reader process change them, so each call takes a lock.

    heartbeat thread    receive(costs), under_way()
    main thread         begin(end, tasks) when Spark takes the tasks, receive(costs), end() once it is in the sink

`receive` holds the lock also while it reads its iterator, so an older report never replaces a newer one. A report of
another batch's slice is no work under way.
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
        self._batch: tuple[StreamOffset, Sequence[Sequence[Slice]]] | None = None  # under way

    def begin(self, end: StreamOffset, tasks: Sequence[Sequence[Slice]]) -> None:
        """Spark takes these tasks of the batch that ends at `end`; a repeated call changes nothing."""
        with self._lock:
            if self._batch is None or self._batch[0] != end:
                self._batch, self._reports = (end, tasks), {}

    def receive(self, costs: Iterable[SliceCost]) -> None:
        """Store reports, the latest last; an iterator is read while the lock is held."""
        with self._lock:
            latest = {cost.slice: cost for cost in costs}
            if self._batch:
                self._reports.update(latest)

    def end(self) -> Reports:
        """The batch has ended: all its reports."""
        with self._lock:
            reports, self._reports, self._batch = self._reports, {}, None
            return reports

    def under_way(self) -> tuple[Slice, ...]:
        """Slices that tasks have begun and not finished, or one key of a slice, ascending."""
        with self._lock:
            begun = [cost for cost in self._reports.values() if not cost.finished]
            ours = frozenset(chain.from_iterable(self._batch[1])) if self._batch and begun else ()
            return tuple(sorted(cost.under_way for cost in begun if cost.slice in ours))
