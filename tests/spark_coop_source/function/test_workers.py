"""Workers of one event loop: as many coroutines as wanted, all cancelled and awaited at the end."""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from queue import SimpleQueue

import pytest

from arrow_records import ALL, batch
from spark_coop_source.function.attempts import AttemptEnd, attempt_async, calls
from spark_coop_source.function.slice_batches import SliceBatch
from spark_coop_source.function.window import BatchesSize
from spark_coop_source.function.workers import NAME, Job, Loop, event_loop

PATIENCE_S = 20


@dataclass
class Recorder:
    """Takes the ends of jobs."""

    ends: "SimpleQueue[AttemptEnd | BaseException]" = field(default_factory=SimpleQueue)

    def finished(self, job: Job, outcome: AttemptEnd) -> None:
        self.ends.put(outcome)

    def broken(self, error: BaseException) -> None:
        self.ends.put(error)

    def next(self) -> AttemptEnd | BaseException:
        return self.ends.get(timeout=PATIENCE_S)


def job(number: int = 0) -> Job:
    records = SliceBatch(batch([b"%d" % number], number), ALL, number)
    return Job(records, BatchesSize.of([records]))


Work = Callable[[SliceBatch], Awaitable[None]]


def opened(work: Work, concurrency: int, results: Recorder) -> Loop:
    return Loop(lambda job: attempt_async(work, calls(job.batch)), concurrency, results)


def ours() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(NAME)]


def test_thousands_of_keys_wait_at_once_on_one_thread() -> None:
    running, most = 0, 0

    async def meet(records: SliceBatch) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3_000:
            enough.set()
        await enough.wait()
        running -= 1

    enough, results = asyncio.Event(), Recorder()
    workers = opened(meet, 3_000, results)
    for number in range(4_000):
        workers.begin(job(number))
    for _ in range(4_000):
        assert isinstance(results.next(), AttemptEnd)
    assert len(ours()) == 1
    workers.close()
    assert most == 3_000
    assert ours() == []


def test_a_close_cancels_coroutines_and_waits_for_them() -> None:
    ended = list[str]()

    async def hang(records: SliceBatch) -> None:
        begun.set()
        try:
            await asyncio.sleep(1_000)
        finally:
            await asyncio.sleep(0)  # a client that closes
            ended.append("closed")

    begun, results = threading.Event(), Recorder()
    workers = opened(hang, 1, results)
    workers.begin(job())
    workers.begin(job(1))
    assert begun.wait(PATIENCE_S)
    workers.close()
    assert ended == ["closed"], "the second one never began"
    assert results.ends.empty()
    assert ours() == []


def test_a_coroutine_that_ignores_its_cancelling_is_awaited() -> None:
    async def stubborn(records: SliceBatch) -> None:
        begun.set()
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError:
            await asyncio.sleep(0)

    begun, results = threading.Event(), Recorder()
    workers = opened(stubborn, 1, results)
    workers.begin(job())
    assert begun.wait(PATIENCE_S)
    workers.close()
    assert isinstance(results.next(), AttemptEnd)


def test_something_cancelled_within_the_function_is_an_error_of_the_function() -> None:
    async def awaits_cancelled(records: SliceBatch) -> None:
        other = asyncio.get_running_loop().create_future()
        other.cancel()
        await other

    results = Recorder()
    workers = opened(awaits_cancelled, 1, results)
    workers.begin(job())
    outcome = results.next()
    workers.close()
    assert isinstance(outcome, AttemptEnd)
    assert isinstance(outcome.error, asyncio.CancelledError)


def test_a_function_that_cancels_its_own_coroutine_ends_the_task() -> None:
    async def cancels_itself(records: SliceBatch) -> None:
        running = asyncio.current_task()
        assert running is not None
        running.cancel()
        await asyncio.sleep(0)

    results = Recorder()
    workers = opened(cancels_itself, 1, results)
    workers.begin(job())
    error = results.next()
    workers.close()
    assert isinstance(error, RuntimeError)
    assert "cancelled the coroutine" in str(error)


def test_after_a_withdrawal_nothing_begins() -> None:
    async def wait(records: SliceBatch) -> None:
        begun.set()
        await free.wait()

    begun, free, results = threading.Event(), asyncio.Event(), Recorder()
    workers = opened(wait, 1, results)
    workers.begin(job())
    assert begun.wait(PATIENCE_S)
    workers.withdraw()
    workers.begin(job(1))
    with_loop = workers._loop
    with_loop.call_soon_threadsafe(free.set)
    first, second = results.next(), results.next()
    workers.close()
    assert isinstance(first, AttemptEnd)
    assert first.rest is None
    assert isinstance(second, AttemptEnd)
    assert second.rest is not None
    assert second.error is None


def test_an_exit_in_a_task_of_the_functions_own_ends_the_work() -> None:
    async def leave() -> None:
        sys.exit(3)

    async def leaves(records: SliceBatch) -> None:
        tasks.append(asyncio.get_running_loop().create_task(leave()))
        await asyncio.sleep(1_000)

    tasks, results = list["asyncio.Task[None]"](), Recorder()
    workers = opened(leaves, 1, results)
    workers.begin(job())
    assert isinstance(results.next(), SystemExit)
    workers.close()
    assert ours() == []
    assert isinstance(tasks[0].exception(), SystemExit)  # else the collector logs it, in the middle of another test


@pytest.mark.parametrize("times", [3])
def test_the_next_task_uses_the_same_loop_so_that_clients_live_on(times: int) -> None:
    async def note(records: SliceBatch) -> None:
        loops.append(asyncio.get_running_loop())

    loops, results = list[asyncio.AbstractEventLoop](), Recorder()
    for _ in range(times):
        workers = opened(note, 2, results)
        workers.begin(job())
        results.next()
        workers.close()
    with event_loop() as loop:
        assert {*loops} == {loop}


def test_two_tasks_at_once_have_two_loops() -> None:
    async def note(records: SliceBatch) -> None:
        loops.append(asyncio.get_running_loop())

    loops, results = list[asyncio.AbstractEventLoop](), Recorder()
    both = [opened(note, 1, results) for _ in range(2)]
    for workers in both:
        workers.begin(job())
    for _ in both:
        results.next()
    for workers in both:
        workers.close()
    assert len({*loops}) == 2
