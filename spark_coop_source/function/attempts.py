"""An attempt on the records of one key: which calls of the user's function it makes, and what they leave.

    records          a1 a2 a3 a4
    first call       a1 a2 a3 a4    fails, so now each record gets a call of its own
    next calls       a1, a2         their rows are kept
                     a3             fails alone: the failing record; a3 a4 are the rest
    a later attempt  a3             alone, since it failed before; then a4 and what came meanwhile, in one call

If the function gets single records, or says which one fails, no call of the records before it is repeated. A function
of single records ends between two records when the time of the task is over.

Knows batches and calls; nothing of threads, of retries, or of the function's schema. Runs in executor workers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from time import perf_counter

import pyarrow as pa

from spark_coop_source.function.slice_batches import SliceBatch

RAISED = (Exception, SystemExit)
"""Exceptions of a function that become errors. `sys.exit()` would end the worker, and not name the record."""

SyncWork = Callable[[SliceBatch], pa.RecordBatch | None]
AsyncWork = Callable[[SliceBatch], Awaitable[pa.RecordBatch | None]]


@dataclass(frozen=True, slots=True)
class DoneRecords:
    """Records that are done: their rows, and the time of the work by the wall clock.

    Without records, it has the time of a call that failed.
    """

    batch: SliceBatch
    made: pa.RecordBatch | None
    ms: float


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """The end of an attempt: what is done, and the records that are left."""

    done: tuple[DoneRecords, ...] = ()
    rest: SliceBatch | None = None
    failed: SliceBatch | None = None  # the first records of the rest: those of the call that failed
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The end of one call: rows, or an error, or both if it is known before which record the work ended."""

    made: pa.RecordBatch | None
    ms: float
    error: BaseException | None = None
    before: int | None = None  # records that are done; None: all, or with an error none


class EndsAt(Exception):  # noqa: N818  what `SyncWork` and `AsyncWork` raise
    """The work ended before one record: the rows of those before it are made. Without an error, its time was over."""

    def __init__(self, before: int, made: pa.RecordBatch | None, error: BaseException | None) -> None:
        super().__init__(before)
        self.before, self.made, self.error = before, made, error


Calls = Generator[SliceBatch, CallEnd, AttemptEnd]


def calls(batch: SliceBatch, *, again: bool = False, singly: bool = False) -> Calls:
    """The records of each call, until a call fails.

    `again`: the first record has failed before, so it is alone. `singly`: after a failed call of several records, each
    of them is alone; then the attempt ends where one record fails alone.
    """
    at, alone, done = 0, int(again), list[DoneRecords]()
    while at < len(batch.records):
        records = batch.part(at, at + 1) if at < alone else batch.part(at)
        answer = yield records
        if answer.before is not None:
            done.append(DoneRecords(batch.part(at, at + answer.before), answer.made, answer.ms))
            at += answer.before
            return AttemptEnd(tuple(done), batch.part(at), batch.part(at, at + 1), answer.error)
        if answer.error is None:
            done.append(DoneRecords(records, answer.made, answer.ms))
            at += len(records.records)
            continue
        done.append(DoneRecords(batch.part(at, at), None, answer.ms))
        if len(records.records) == 1 or not singly:
            return AttemptEnd(tuple(done), batch.part(at), records, answer.error)
        alone = len(batch.records)
    return AttemptEnd(tuple(done))


def attempt(work: SyncWork, calls: Calls) -> AttemptEnd:
    """Make the calls of an attempt, on this thread."""
    try:
        records = next(calls)
        while True:
            records = calls.send(_answer(work, records))
    except StopIteration as end:
        outcome: AttemptEnd = end.value
        return outcome


async def attempt_async(work: AsyncWork, calls: Calls) -> AttemptEnd:
    """Make the calls of an attempt, in this event loop."""
    try:
        records = next(calls)
        while True:
            records = calls.send(await _answer_async(work, records))
    except StopIteration as end:
        outcome: AttemptEnd = end.value
        return outcome


def _answer(work: SyncWork, records: SliceBatch) -> CallEnd:
    began = perf_counter()
    try:
        return CallEnd(work(records), _ms_since(began))
    except EndsAt as at:
        return CallEnd(at.made, _ms_since(began), at.error, at.before)
    except RAISED as raised:
        return CallEnd(None, _ms_since(began), raised)


async def _answer_async(work: AsyncWork, records: SliceBatch) -> CallEnd:
    began = perf_counter()
    try:
        return CallEnd(await work(records), _ms_since(began))
    except EndsAt as at:
        return CallEnd(at.made, _ms_since(began), at.error, at.before)
    except RAISED as raised:
        return CallEnd(None, _ms_since(began), raised)
    except asyncio.CancelledError as cancelled:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return CallEnd(None, _ms_since(began), cancelled)  # of something that the function awaited


def _ms_since(began: float) -> float:
    return (perf_counter() - began) * 1000
