"""Reports of tasks on the batch under way. Several threads of a reader process change them, so each call takes a lock.

    heartbeat thread    receive(costs, now_ms), under_way(now_ms), all_ended
    threads of tasks    agreed(digest, task), agree(digest, task, ends)
    main thread         begin(end, tasks) when Spark takes the tasks, receive(costs, now_ms), end() and ends(end) once
                        it is in the sink

`receive` holds the lock also while it reads its iterator, so an older report never replaces a newer one. A report of
another batch's slice is no work under way. Of several attempts of a task the first end counts (rule: first-end-wins).
Once all tasks of a batch have ended here, tasks are known to reach this process.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from itertools import chain
from threading import Lock

from coordinator.plan.cost.telemetry import SliceCost
from coordinator.plan.poison import MOST_SLICES
from coordinator.progress.ends import Ends, ends_of
from coordinator.progress.failing import NO_FAILURES, Failures
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset

Reports = dict[Slice, SliceCost]

STALE_MS = 5_000
"""A task that works on keys gives a sign of life each second. After this time without one, its calls are not known."""


class Reach(Enum):
    """Which tasks reach this process."""

    UNKNOWN = auto()  # no batch has shown it, or some tasks do not
    ALL = auto()  # all tasks of a batch have ended here
    NONE = auto()  # tasks connect no more


@dataclass(frozen=True, slots=True)
class TaskEnded:
    """The answer to a task that has ended its slices."""

    agreed: Ends  # of its first attempt: this one, or an earlier one
    early: Ends  # the same, without planned ends
    whole: Ends | None  # the ends of the batch, if all its tasks have ended
    failures: Failures = NO_FAILURES  # of its first attempt
    all_failures: Failures = NO_FAILURES  # of the batch, if all its tasks have ended


@dataclass(slots=True)
class _Batch:
    end: StreamOffset
    tasks: Sequence[Sequence[Slice]]
    ends: dict[int, Ends] = field(default_factory=dict)  # by the number of the task
    failures: dict[int, Failures] = field(default_factory=dict)  # likewise
    known: Ends | None = None  # the ends of all tasks, since the last one of them ended

    def whole(self) -> Ends:
        """The ends of the tasks that have ended. One that never ran was not needed: it counts as read."""
        if self.known is None:  # an idle query asks again and again
            self.known = ends_of((self.tasks[i], ends) for i, ends in self.ends.items())
        return self.known

    def all_failures(self) -> Failures:
        """What the function failed on in the tasks that have ended."""
        return sum(self.failures.values(), NO_FAILURES)


class Inbox:
    """The latest report of each slice of the batch under way, and the ends of its tasks."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._reports: Reports = {}
        self._heard_ms: dict[Slice, int] = {}  # when the report came
        self._under_way = False
        self._batch: _Batch | None = None  # the last one; its ends stay after it has ended
        self._reach = Reach.UNKNOWN

    def begin(self, end: StreamOffset, tasks: Sequence[Sequence[Slice]]) -> None:
        """Spark takes these tasks of the batch that ends at `end`; a repeated call changes nothing."""
        with self._lock:
            if self._batch is None or self._batch.end != end:
                self._batch, self._reports, self._heard_ms = _Batch(end, tasks), {}, {}
            self._under_way = True

    def receive(self, costs: Iterable[SliceCost], now_ms: int) -> None:
        """Store reports, the latest last; an iterator is read while the lock is held."""
        with self._lock:
            latest = {cost.slice: cost for cost in costs}
            if self._under_way:
                self._reports.update(latest)
                self._heard_ms.update(dict.fromkeys(latest, now_ms))

    def agreed(self, digest: str, task: int) -> Ends | None:
        """The ends of the first attempt of a task; None if no attempt has ended. `KeyError` for another batch."""
        with self._lock:
            return self._asked(digest).ends.get(task)

    def agree(self, digest: str, task: int, ends: Ends, failures: Failures = NO_FAILURES) -> TaskEnded:
        """An attempt of a task has ended its slices. `KeyError` for another batch."""
        with self._lock:
            batch = self._asked(digest)
            agreed = batch.ends.setdefault(task, ends)
            batch.known = None
            failed = batch.failures.setdefault(task, failures)
            early = ends_of([(batch.tasks[task], agreed)])
            if len(batch.ends) < len(batch.tasks):
                return TaskEnded(agreed, early, None, failed)
            self._reach = Reach.ALL
            return TaskEnded(agreed, early, batch.whole(), failed, batch.all_failures())

    def no_task_connects(self) -> None:
        """No task connects to this process any more."""
        with self._lock:
            self._reach = Reach.NONE

    @property
    def all_ended(self) -> bool:
        """Whether every task of the batch under way has ended here."""
        with self._lock:
            batch = self._batch if self._under_way else None
            return batch is not None and len(batch.ends) == len(batch.tasks)

    @property
    def reach(self) -> Reach:
        """Which tasks reach this process."""
        with self._lock:
            return self._reach

    def ends(self, end: StreamOffset) -> Ends | None:
        """The ends of the batch that ends at `end`; None if this process did not run it."""
        with self._lock:
            return self._batch.whole() if self._batch and self._batch.end == end else None

    def failures(self, end: StreamOffset) -> Failures:
        """What the function failed on in the batch that ends at `end`, as far as its tasks reported it."""
        with self._lock:
            return self._batch.all_failures() if self._batch and self._batch.end == end else NO_FAILURES

    def end(self) -> Reports:
        """The batch has ended: all its reports."""
        with self._lock:
            reports, self._reports, self._under_way = self._reports, {}, False
            return reports

    def under_way(self, now_ms: int) -> tuple[Slice, ...]:
        """Slices that tasks have begun and not finished, ascending; of a slice only the calls under way, if known.

        Calls of a task that gives no sign of life are not known: it may have begun others since.
        """
        with self._lock:
            begun = [cost for cost in self._reports.values() if not cost.finished]
            tasks = self._batch.tasks if self._batch and self._under_way and begun else ()
            ours = frozenset(chain.from_iterable(tasks))
            begun = [cost for cost in begun if cost.slice in ours]
            heard = [c if now_ms - self._heard_ms[c.slice] < STALE_MS else replace(c, at=()) for c in begun]
            calls = sorted(chain.from_iterable(cost.under_way for cost in heard))
            return tuple(calls if len(calls) <= MOST_SLICES else sorted(cost.slice for cost in begun))

    def _asked(self, digest: str) -> _Batch:
        if self._batch is None or not self._under_way or self._batch.end.digest != digest:
            raise KeyError(digest)
        return self._batch
