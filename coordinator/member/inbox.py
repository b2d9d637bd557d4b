"""What tasks report of the batch under way: the one object that both threads of a reader process change.

    heartbeat thread    receive(costs), under_way(), began_ms()
    main thread         begin(tasks, ...) as a batch is handed out, receive(costs), end() once the sink has completed it

Each call holds the lock, `receive` also while it takes the reports from where they arrived: so an older report never
replaces a newer one. A report of another batch's slice is no work under way.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from threading import Lock

from coordinator.progress.slices import Slice
from coordinator.telemetry import SliceCost

Reports = dict[Slice, SliceCost]


class Inbox:
    """The latest report of each slice of the batch under way."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._reports: Reports | None = None  # None: no batch is under way
        self._tasks: Sequence[Sequence[Slice]] = ()
        self._trial = False
        self._began_ms = 0

    def begin(self, tasks: Sequence[Sequence[Slice]], *, trial: bool, now_ms: int) -> None:
        """A batch is handed out as these tasks; `trial` if it tries a struck lane alone."""
        with self._lock:
            self._reports, self._tasks, self._trial, self._began_ms = {}, tasks, trial, now_ms

    def receive(self, costs: Iterable[SliceCost]) -> None:
        """Store reports, the latest last; an iterator is read while the lock is held."""
        with self._lock:
            latest = {cost.slice: cost for cost in costs}
            if self._reports is not None:
                self._reports |= latest

    def end(self) -> Reports:
        """The batch has ended: all that was reported of it."""
        with self._lock:
            reports, self._reports = self._reports or {}, None
            return reports

    def began_ms(self) -> int | None:
        """When the batch under way was handed out; None if there is none."""
        with self._lock:
            return self._began_ms if self._reports is not None else None

    def under_way(self) -> tuple[tuple[Slice, ...], bool]:
        """Slices, or a key of one, that were begun and have not ended, ascending; and whether the batch is a trial."""
        with self._lock:
            begun = [cost for cost in (self._reports or {}).values() if not cost.finished]
            ours = frozenset(chain.from_iterable(self._tasks)) if begun else frozenset()
            return tuple(sorted(cost.under_way for cost in begun if cost.slice in ours)), self._trial
