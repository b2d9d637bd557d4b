"""Works on many keys at once: each key's batches one after another, in the order they came.

    batches that come     a1 b1 a2 c1 a3 b2
    waiting, by key       a: a2 a3   b: b2        c and every other key go on while a is slow
    workers               a1 b1 c1                then a2 a3 in one call

The life of a batch of one key:

1. The task copies it out of its larger batch. From here on it counts against the window.
2. It waits for the earlier batches of its key. Batches that wait for the same key become one.
3. A worker attempts it. Records that are done go to the task.
4. If a record fails, the task decides: its key waits for the next attempt, goes on behind it, or has ended before it.
5. The task returns the results. The batch no longer counts.

So a slow key delays other keys only once its waiting records fill the window. A key that waits for its next attempt
holds no worker. Memory is bounded by the window and the results of its batches.

Knows batches and the time; nothing of the function, of Arrow schemas, or of costs. Runs in executor workers.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import Enum, auto
from heapq import heappop, heappush
from itertools import count
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Protocol

from coordinator.progress.failing import FailingRecord
from spark_coop_source.function.attempts import AttemptEnd, DoneRecords
from spark_coop_source.function.slice_batches import SliceBatch
from spark_coop_source.function.window import BatchesSize, Window
from spark_coop_source.function.workers import Job, Opened


@dataclass(frozen=True, slots=True)
class Again:
    """The failing record gets another attempt, after so many seconds. Its key waits for it."""

    seconds: float
    record: FailingRecord


class NextRecord(Enum):
    """What follows a failed record whose key does not wait."""

    GO_ON = auto()  # it is done; its key goes on behind it
    ENDED = auto()  # its key hash has ended before it: the function gets no more of it


class Deciding(Protocol):
    """Decides, on the task's thread, where keys end and what follows a failed attempt."""

    @property
    def over(self) -> bool:
        """Whether the time of the task is over."""

    def waits(self, seconds: float) -> bool:
        """Whether the task waits so long for the next attempt, though it has nothing else to do."""

    def after(self, failed: SliceBatch, error: BaseException, earlier: FailingRecord | None) -> Again | NextRecord:
        """What follows a failed call; raises an error that ends the task. `earlier`: the last attempt on the record."""

    def defer(self, record: FailingRecord) -> None:
        """The time of the task is over while this record waits for its next attempt."""

    def withdraw(self, batch: SliceBatch) -> None:
        """The time of the task is over before the work on these records begins."""


def keyed_work(
    batches: Iterator[SliceBatch], opened: Opened, window: Window, deciding: Deciding, clock: Callable[[], float]
) -> Iterator[DoneRecords]:
    """The results of all batches, each key's in order, the keys in any. Batches of a key that wait together are joined.

    The workers that `opened` makes attempt the batches; the caller's thread reads `batches`, which were cut by key, and
    decides. An error of a decision is raised here. Then no new attempt begins, and running ones are awaited. So none
    still runs when Spark retries the task. When its time is over, batches that no worker has begun are withdrawn.

    `clock`: seconds that only grow.
    """
    with closing(_Keys(opened, window, deciding, clock)) as keys:
        for batch in batches:
            keys.add(batch)
            yield from keys.done()
            while keys.full:
                yield from keys.done(wait=True)
        while keys.busy:
            if deciding.over or (keys.idle and not deciding.waits(keys.due_s)):
                keys.end()
            yield from keys.done(wait=keys.busy)


class _Keys:
    """The keys in work. Only the task's own thread uses it; workers call `finished` and `broken`."""

    def __init__(self, opened: Opened, window: Window, deciding: Deciding, clock: Callable[[], float]) -> None:
        self._window, self._deciding, self._clock = window, deciding, clock
        self._lock = Lock()
        self._waiting: dict[object, list[SliceBatch]] = {}  # of each key in work; guarded by the lock
        self._closed = False  # guarded by the lock
        self._results: SimpleQueue[tuple[Job, AttemptEnd] | BaseException] = SimpleQueue()
        self._delayed: list[tuple[float, int, Job, FailingRecord]] = []  # a heap: when due, and a number
        self._numbers = count()
        self._ended = set[object]()  # key hashes
        self._load = BatchesSize()  # taken, not yet returned
        self._workers = opened(self)

    @property
    def busy(self) -> bool:
        return self._load.batches > 0

    @property
    def idle(self) -> bool:
        """Whether each key in work waits for its next attempt."""
        with self._lock:
            return len(self._delayed) == len(self._waiting) > 0

    @property
    def due_s(self) -> float:
        """The time until the next attempt of an idle task."""
        return max(0.0, self._delayed[0][0] - self._clock())

    @property
    def full(self) -> bool:
        return self._window.filled(self._load)

    def add(self, batch: SliceBatch) -> None:
        """Take a batch. Nothing comes of a key hash that has ended."""
        if _hash(batch) in self._ended:
            return
        key = _key(batch)
        with self._lock:
            behind = self._waiting.get(key)
            kept = batch.copied() if behind is not None or self._workers.copies else batch
            load = BatchesSize.of([kept])
            self._load += load
            if behind is not None:
                behind.append(kept)
                return
            self._waiting[key] = []
        self._workers.begin(Job(kept, load))

    def done(self, *, wait: bool = False) -> Iterator[DoneRecords]:
        """All results so far; with `wait`, at least one, or none if an attempt is due before."""
        while self._delayed and self._delayed[0][0] <= self._clock():
            *_, job, _ = heappop(self._delayed)
            self._workers.begin(job)
        while (result := self._next(wait=wait)) is not None:
            yield from self._results_of(*result)
            wait = False

    def end(self) -> None:
        """The time of the task is over: begin no further batch and no further attempt."""
        self._workers.withdraw()
        for *_, job, record in self._delayed:
            self._deciding.defer(record)
            self._drop(job)
        self._delayed.clear()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._workers.close()

    def _next(self, *, wait: bool) -> tuple[Job, AttemptEnd] | None:
        seconds = self.due_s if self._delayed else None
        try:
            result = self._results.get(block=wait, timeout=seconds)
        except Empty:
            return None
        if isinstance(result, BaseException):
            raise result
        return result

    def _results_of(self, job: Job, outcome: AttemptEnd) -> Iterator[DoneRecords]:
        yield from outcome.done
        rest, failed = outcome.rest, outcome.failed
        if rest is None:
            self._load -= job.load
        elif failed is None or outcome.error is None:
            self._deciding.withdraw(rest)
            self._drop(job)
        else:
            earlier = job.earlier if job.earlier and job.earlier.offset == rest.first else None
            match self._deciding.after(failed, outcome.error, earlier):
                case Again(seconds, record):
                    self._delay(job, rest, seconds, record)
                case NextRecord.ENDED:
                    self._drop(job)
                case NextRecord.GO_ON:
                    yield DoneRecords(failed, None, 0.0)
                    left = [rest.part(1)] if len(rest.records) > 1 else []
                    self._load += BatchesSize.of(left) - job.load
                    self._go_on(_key(rest), left)

    def _delay(self, job: Job, rest: SliceBatch, seconds: float, record: FailingRecord) -> None:
        kept = rest.copied()
        load = BatchesSize.of([kept])
        self._load += load - job.load
        delayed = self._clock() + seconds, next(self._numbers), Job(kept, load, record), record
        heappush(self._delayed, delayed)

    def _drop(self, job: Job) -> None:
        """The task ends its key hash before the job."""
        self._ended.add(_hash(job.batch))
        with self._lock:
            behind = self._waiting.pop(_key(job.batch))
        self._load -= job.load + BatchesSize.of(behind)

    def finished(self, job: Job, outcome: AttemptEnd) -> None:
        """Take an outcome. If it leaves nothing of the job, its key goes on. Any thread may call it."""
        self._results.put((job, outcome))
        if outcome.rest is None:
            self._go_on(_key(job.batch), [])

    def broken(self, error: BaseException) -> None:
        """Take an error for the task's thread. Any thread may call it."""
        self._results.put(error)

    def _go_on(self, key: object, left: list[SliceBatch]) -> None:
        """Begin what is left of a key: of its last job, and behind that."""
        with self._lock:
            batches = [*left, *self._waiting.pop(key)]
            if self._closed or not batches:
                return
            self._waiting[key] = []
        self._workers.begin(Job(batches[0].joined(batches[1:]), BatchesSize.of(batches)))


def _key(batch: SliceBatch) -> object:
    """The key whose batches stay in order. A record without a key gets its own, and hardly ever waits."""
    return (batch.of.topic_partition, batch.key, batch.key_hash)


def _hash(batch: SliceBatch) -> object:
    return (batch.of.topic_partition, batch.key_hash)
