"""Three ways to work on keys: on the task's thread, by threads, or as coroutines of one event loop.

    Inline    one key, on the thread that begins it
    Threads   up to `concurrency` keys, each on a thread
    Loop      up to `concurrency` keys, all on one thread beside the task's: each is a coroutine

Knows attempts; nothing of the order of jobs, of retries, or of the window. Runs in executor workers.
"""

import asyncio
import atexit
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread, get_ident
from typing import Protocol

from coordinator.progress.failing import FailingRecord
from spark_coop_source.function.attempts import AttemptEnd
from spark_coop_source.function.slice_batches import SliceBatch
from spark_coop_source.function.window import BatchesSize

NAME = "coop-kafka-key"
"""The beginning of the names of all threads."""


@dataclass(frozen=True, slots=True)
class Job:
    """Records of one key to work on."""

    batch: SliceBatch
    load: BatchesSize
    earlier: FailingRecord | None = None  # its first record, if attempts on it have failed


Attempt = Callable[[Job], AttemptEnd]
AsyncAttempt = Callable[[Job], Awaitable[AttemptEnd]]


class Results(Protocol):
    """Takes the results of workers, on their threads."""

    def finished(self, job: Job, outcome: AttemptEnd) -> None:
        """The job has come to an end."""

    def broken(self, error: BaseException) -> None:
        """A mistake of ours, or an exit of the process: all work ends."""


class CallWorkers(Protocol):
    """Works on jobs; their outcomes go to `Results`."""

    copies: bool
    """Whether a job outlives the call that begins it, so that its records need memory of their own."""

    def begin(self, job: Job) -> None:
        """Work on this job as soon as a worker is free. Any thread may call it."""

    def withdraw(self) -> None:
        """From now on, jobs that are not begun end without work."""

    def close(self) -> None:
        """Begin nothing more, and wait for the work that was begun."""


Opened = Callable[[Results], CallWorkers]


class Inline:
    """Works on a job when it begins, on the caller's thread."""

    copies = False

    def __init__(self, attempt: Attempt, results: Results) -> None:
        self._attempt, self._results = attempt, results

    def begin(self, job: Job) -> None:
        """Work on this job, here and now."""
        self._results.finished(job, self._attempt(job))

    def withdraw(self) -> None:
        """Every job was worked on when it began."""

    def close(self) -> None:
        """No work outlives its call."""


class Threads:
    """Works on each job by one of some threads."""

    copies = True

    def __init__(self, attempt: Attempt, concurrency: int, results: Results) -> None:
        self._attempt, self._results = attempt, results
        self._pool = ThreadPoolExecutor(concurrency, NAME)
        self._withdrawing = False

    def begin(self, job: Job) -> None:
        """Work on this job on the next free thread."""
        self._pool.submit(self._run, job)

    def withdraw(self) -> None:
        """From now on, jobs that are not begun end without work."""
        self._withdrawing = True

    def close(self) -> None:
        """Begin nothing more, and wait for running calls."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, job: Job) -> None:
        try:
            self._results.finished(job, AttemptEnd(rest=job.batch) if self._withdrawing else self._attempt(job))
        except BaseException as error:  # noqa: BLE001  the pool would hide it
            self._results.broken(error)


class Loop:
    """Works on jobs as coroutines of one event loop, on a thread of its own. `close` cancels them first."""

    copies = True

    def __init__(self, attempt: AsyncAttempt, concurrency: int, results: Results) -> None:
        self._attempt, self._concurrency, self._results = attempt, concurrency, results
        self._jobs = deque[Job]()
        self._running = set[asyncio.Task[None]]()
        self._withdrawing = self._closed = self._woken = False
        self._closing = asyncio.Event()
        self._loop = _idle_loop()
        self._thread = Thread(target=self._serve, name=NAME, daemon=True)
        self._thread.start()

    def begin(self, job: Job) -> None:
        """Work on this job once fewer than `concurrency` run."""
        self._jobs.append(job)
        if get_ident() != self._thread.ident and not self._woken:  # a coroutine that ends looks for jobs itself
            self._woken = True
            self._loop.call_soon_threadsafe(self._fill)

    def withdraw(self) -> None:
        """From now on, jobs that are not begun end without work."""
        self._withdrawing = True

    def close(self) -> None:
        """Cancel all coroutines, and wait for them."""
        self._closed = True
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    def _serve(self) -> None:
        served = False
        while not served:
            try:
                self._loop.run_until_complete(self._until_closed())
                served = True
            except BaseException as error:  # noqa: BLE001  sys.exit() in a task that the function has created
                self._results.broken(error)
        _IDLE.append(self._loop)

    async def _until_closed(self) -> None:
        await self._closing.wait()
        while self._running:
            for task in self._running:
                task.cancel()
            await asyncio.wait(self._running)

    def _fill(self) -> None:
        self._woken = False  # before it looks for jobs: one that comes meanwhile wakes the loop again
        while self._jobs and len(self._running) < self._concurrency and not self._closed:
            task = self._loop.create_task(self._run(self._jobs.popleft()))
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        self._fill()

    async def _run(self, job: Job) -> None:
        try:
            self._results.finished(job, AttemptEnd(rest=job.batch) if self._withdrawing else await self._attempt(job))
        except asyncio.CancelledError:
            if not self._closed:  # without a result, the task would wait for ever
                self._results.broken(RuntimeError("the function cancelled the coroutine in which it is called"))
            raise
        except BaseException as error:  # noqa: BLE001  the loop would hide it, or end
            self._results.broken(error)


_IDLE: list[asyncio.AbstractEventLoop] = []
"""Event loops of this process that no task uses. They stay open, since clients that a function keeps belong to them."""


@atexit.register
def _close_loops() -> None:
    for loop in _IDLE:
        loop.close()


def _idle_loop() -> asyncio.AbstractEventLoop:
    return _IDLE.pop() if _IDLE else asyncio.new_event_loop()


@contextmanager
def event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop for calls one by one, on the caller's thread."""
    loop = _idle_loop()
    try:
        yield loop
    finally:
        _IDLE.append(loop)
