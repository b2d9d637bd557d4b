"""Works on many keys at once, by threads: each key's batches one after another, in the order they came.

    batches that come     a1 b1 a2 c1 a3 b2
    waiting, by key       a: a2 a3   b: b2        c and every other key go on while a is slow
    threads               a1 b1 c1                then a2 a3 in one call

The life of a batch of one key:

1. The task copies it out of its larger batch. From here on it counts against the window.
2. It waits for the earlier batches of its key. Batches that wait for the same key become one.
3. A thread calls the function on it.
4. The task returns its result. It no longer counts.

So a slow key delays other keys only once its waiting records fill the window. Memory is bounded by the window and
the results of its batches.

Knows batches and threads; nothing of the function, of Arrow schemas, or of costs. Runs in executor workers.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Lock
from time import perf_counter
from typing import Self

import pyarrow as pa

from spark_coop_source.function.slice_batches import SliceBatch

Work = Callable[[SliceBatch], pa.RecordBatch | None]


@dataclass(frozen=True, slots=True)
class Window:
    """The most batches that are taken and not yet returned. One batch is always allowed."""

    rows: int = 100_000
    bytes: int = 64 * 1024 * 1024
    batches: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Done:
    """A finished batch: its result, and the time of the work by the wall clock. Or one that was withdrawn."""

    batch: SliceBatch
    made: pa.RecordBatch | None
    ms: float
    worked: bool = True  # False: the task ended before its turn


def timed(work: Work, batch: SliceBatch) -> Done:
    """Work on a batch here and now."""
    began = perf_counter()
    made = work(batch)
    return Done(batch, made, (perf_counter() - began) * 1000)


def keyed_work(
    batches: Iterator[SliceBatch], work: Work, concurrency: int, window: Window, over: Callable[[], bool] | None = None
) -> Iterator[Done]:
    """The results of all batches, each key's in order, the keys in any. Batches of a key that wait together are joined.

    `concurrency` threads call `work`; the caller's thread reads `batches`, which were cut by key. An error of `work` is
    raised here. Then no new call begins, and running calls are awaited. So no call still runs when Spark retries the
    task.

    `over`: whether the task must end. Then batches that no thread has begun are withdrawn.
    """
    with closing(_Threads(work, concurrency, window)) as threads:
        for batch in batches:
            threads.add(batch.copied())
            yield from threads.done()
            while threads.full:
                yield from threads.done(wait=True)
        while threads.busy:
            if over and over():
                threads.withdraw()
            yield from threads.done(wait=True)


@dataclass(frozen=True, slots=True)
class _Load:
    """The size of some batches."""

    batches: int
    rows: int
    bytes: int

    @classmethod
    def of(cls, batch: SliceBatch) -> Self:
        return cls(1, len(batch.records), batch.records.get_total_buffer_size())

    def __add__(self, other: "_Load") -> "_Load":
        return _Load(self.batches + other.batches, self.rows + other.rows, self.bytes + other.bytes)

    def __sub__(self, other: "_Load") -> "_Load":
        return _Load(self.batches - other.batches, self.rows - other.rows, self.bytes - other.bytes)


class _Threads:
    """The threads and their queue. Only the task's own thread uses `add`, `done` and the counts."""

    def __init__(self, work: Work, concurrency: int, window: Window) -> None:
        self._work = work
        self._window = window
        self._pool = ThreadPoolExecutor(concurrency, "coop-kafka-key")
        self._lock = Lock()
        self._waiting: dict[object, list[SliceBatch]] = {}  # of each key in work; guarded by the lock
        self._closed = False  # guarded by the lock
        self._withdrawing = False  # guarded by the lock
        self._results: SimpleQueue[tuple[_Load, Done] | BaseException] = SimpleQueue()
        self._load = _Load(0, 0, 0)  # taken, not yet returned

    @property
    def busy(self) -> bool:
        return self._load.batches > 0

    @property
    def full(self) -> bool:
        load, most = self._load, self._window
        return self.busy and (load.rows >= most.rows or load.bytes >= most.bytes or load.batches >= most.batches)

    def add(self, batch: SliceBatch) -> None:
        self._load += _Load.of(batch)
        with self._lock:
            behind = self._waiting.get(_key(batch))
            if behind is None:
                self._waiting[_key(batch)] = []
                self._pool.submit(self._run, [batch])
            else:
                behind.append(batch)

    def done(self, *, wait: bool = False) -> Iterator[Done]:
        """All finished batches; with `wait`, at least one."""
        while wait or not self._results.empty():
            result = self._results.get()
            if isinstance(result, BaseException):
                raise result
            load, done = result
            self._load -= load
            yield done
            wait = False

    def withdraw(self) -> None:
        """Begin no further batch."""
        with self._lock:
            self._withdrawing = True

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, batches: list[SliceBatch]) -> None:
        try:
            load = sum(map(_Load.of, batches), _Load(0, 0, 0))
            batch = batches[0].joined(batches[1:]) if len(batches) > 1 else batches[0]
            batches.clear()  # the pool keeps the list during the work
            with self._lock:
                withdrawn = self._withdrawing
            self._results.put((load, Done(batch, None, 0.0, worked=False) if withdrawn else timed(self._work, batch)))
            self._go_on_behind(batch)
        except BaseException as error:  # noqa: BLE001  SystemExit too: the pool would hide it
            self._results.put(error)  # and no more of this key starts

    def _go_on_behind(self, batch: SliceBatch) -> None:
        with self._lock:
            behind = self._waiting.pop(_key(batch))
            if behind and not self._closed:
                self._waiting[_key(batch)] = []
                self._pool.submit(self._run, behind)


def _key(batch: SliceBatch) -> object:
    """The key whose batches stay in order. A record without a key gets its own, and hardly ever waits."""
    return (batch.of.topic_partition, batch.key, batch.key_hash)
