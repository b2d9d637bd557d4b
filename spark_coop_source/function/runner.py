"""Runs the user's function over the records that a task reads.

It calls the function once, with an iterator of all batches; or for single keys, one or many at once (`keyed_work`).
Knows the forms of the function; nothing of Kafka, options or Redis. Runs in executor workers.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from time import perf_counter
from typing import Self

import pyarrow as pa

from spark_coop_source.function.attempts import RAISED, Calls, DoneRecords, attempt, attempt_async, calls
from spark_coop_source.function.call import FunctionCall
from spark_coop_source.function.decisions import CallEnding, DeadLetterWriter, Decisions
from spark_coop_source.function.keyed_work import keyed_work
from spark_coop_source.function.slice_batches import (
    SliceBatch,
    SliceTable,
    Tables,
    by_key,
    by_slice,
    each_record,
    partition_of,
)
from spark_coop_source.function.user_function import UserFunction
from spark_coop_source.function.window import Window
from spark_coop_source.function.workers import Inline, Job, Loop, Opened, Threads, event_loop


class Listener:
    """Called around each batch. This one does nothing."""

    def goes_on(self) -> None:
        """The function asks for a batch. Raises if it must not get another one."""

    def begins(self, batch: SliceBatch) -> None:
        """The function gets this batch next. On the thread of the call."""

    def returned(self, batch: SliceBatch) -> None:
        """The function has returned from this batch, or has failed. On the thread of the call."""

    def worked(self, done: DoneRecords) -> None:
        """The result of a batch has come to the task's own thread."""


SILENT = Listener()

WAITING_KEYS = 8
"""So many keys for each thread may wait for it, in a task that may end early: each of them may be withdrawn."""

AHEAD = 8
"""So many keys come ahead of their order in such a task, if it works on many at once."""

MOST_WAITING = 8_192
"""Most keys that wait in such a task: all ends of a task travel in one frame, and become positions in Redis."""


SliceCutter = Callable[[pa.RecordBatch, SliceTable], Iterator[SliceBatch]]


def run(
    function: UserFunction,
    batches: Iterator[pa.RecordBatch],
    slices: Tables,
    listener: Listener = SILENT,
    *,
    by_record: bool = False,
    ending: CallEnding | None = None,
    dead_letters: DeadLetterWriter | None = None,
    hidden: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """The output of `function` for `batches`, each of one partition; with `by_record` keys come one record at a time.

    `ending`: may leave out keys, if the function gets single keys. `dead_letters`: where its policy wants them.
    `hidden`: columns that a function of single keys does not get.

    Raises:
        FunctionFailedError: the function raised, or its output does not fit its schema.
        EnvironmentMismatchError: this process cannot load the function.
    """
    call = FunctionCall.of(function, hidden, lambda: ending is not None and ending.over)
    yield from run_call(call, function, batches, slices, listener, by_record, ending, dead_letters)


def run_call(
    call: FunctionCall,
    function: UserFunction,
    batches: Iterator[pa.RecordBatch],
    slices: Tables,
    listener: Listener = SILENT,
    by_record: bool = False,
    ending: CallEnding | None = None,
    dead_letters: DeadLetterWriter | None = None,
) -> Iterator[pa.RecordBatch]:
    """The same for a function that is loaded already."""
    cut = _cut_of(function, by_record=by_record, whole=ending is None)
    cuts = _cuts(batches, cut, slices, ending, listener)
    if not function.per_key:
        yield from _over_all(call, cuts, listener)
        return
    window = early_window(function.concurrency) if ending else Window()
    decisions = Decisions(call, ending, dead_letters)
    with ExitStack() as stack:
        stack.callback(decisions.close)
        opened = _workers(call, 1 if by_record else function.concurrency, listener, stack)
        yield from _made(keyed_work(cuts, opened, window, decisions, perf_counter), listener)


def _cut_of(function: UserFunction, *, by_record: bool, whole: bool) -> SliceCutter:
    """How batches are cut for a function; with many keys at once, the longest work begins first.

    All keys come in that order if the task works on `whole` slices. Else only a few do: if the task ends early, each of
    them may get a position of its own.
    """
    if not function.per_key:
        return by_slice
    if by_record:
        return each_record
    if function.concurrency == 1:
        return by_key
    return partial(by_key, ahead=None if whole else AHEAD)


def early_window(concurrency: int) -> Window:
    """The window of a task that may end early: the keys in work, and those that wait."""
    return Window(batches=concurrency + min((WAITING_KEYS - 1) * concurrency, MOST_WAITING))


def _cuts(
    batches: Iterator[pa.RecordBatch], cut: SliceCutter, slices: Tables, ending: CallEnding | None, listener: Listener
) -> Iterator[SliceBatch]:
    for batch in batches:
        for each in cut(batch, slices[partition_of(batch)]) if len(batch) else ():
            tp, key_hash = each.of.topic_partition, each.key_hash
            if ending and key_hash is not None and not ending.before_key(tp, key_hash, ahead=each.ahead):
                break
            listener.goes_on()
            yield each


def _workers(call: FunctionCall, concurrency: int, listener: Listener, stack: ExitStack) -> Opened:
    def work(records: SliceBatch) -> pa.RecordBatch | None:
        listener.begins(records)
        try:
            return call.on_key(records)
        finally:
            listener.returned(records)

    async def work_async(records: SliceBatch) -> pa.RecordBatch | None:
        listener.begins(records)
        try:
            return await call.on_key_async(records)
        finally:
            listener.returned(records)

    if not call.awaits:
        made = Inline if concurrency == 1 else partial(Threads, concurrency=concurrency)
        return lambda results: made(lambda job: attempt(work, _calls(call, job)), results=results)
    if concurrency > 1:
        return partial(Loop, lambda job: attempt_async(work_async, _calls(call, job)), concurrency)
    loop = stack.enter_context(event_loop())
    return partial(Inline, lambda job: attempt(lambda r: loop.run_until_complete(work_async(r)), _calls(call, job)))


def _calls(call: FunctionCall, job: Job) -> Calls:
    return calls(job.batch, again=job.earlier is not None, singly=call.policy is not None)


def _made(work: Iterator[DoneRecords], listener: Listener) -> Iterator[pa.RecordBatch]:
    for done in work:
        listener.worked(done)
        if done.made is not None and len(done.made):
            yield done.made


def _over_all(call: FunctionCall, batches: Iterator[SliceBatch], listener: Listener) -> Iterator[pa.RecordBatch]:
    """As `mapInArrow`: one call, which takes an iterator and returns one."""
    feed = _Feed(batches, listener)
    made = _steps(call, feed)
    while True:
        try:
            with feed.clock():
                batch = next(made)
        except StopIteration:
            break
        except RAISED as error:
            feed.check()
            raise call.failure(error, feed.at) from None
        checked = call.checked(batch, feed.at)
        if len(checked):
            yield checked
    feed.check()
    at = feed.at
    if feed.has_more():
        raise call.unfinished(at)


def _steps(call: FunctionCall, feed: "_Feed") -> Iterator[object]:
    made = call.function(feed)
    if not isinstance(made, Iterable):
        raise TypeError(f"it returned {made!r:.100}, not an iterator of record batches")
    yield from made


class _Feed:
    """The function's input. The time from the yield of a batch to the next request is the cost of that batch.

    The clock runs only in the function. It stops while records are read, and while output goes to Spark.
    """

    def __init__(self, batches: Iterator[SliceBatch], listener: Listener) -> None:
        self._batches = batches
        self._listener = listener
        self._ms = 0.0
        self._since = 0.0
        self._open = False  # the function has a batch whose cost is not reported yet
        self.at: SliceBatch | None = None  # the last batch of the function
        self._failure: Exception | None = None  # an error of reading

    @contextmanager
    def clock(self) -> Iterator[None]:
        self._since = perf_counter()
        try:
            yield
        finally:
            self._ms += (perf_counter() - self._since) * 1000

    def check(self) -> None:
        """Raise an error of reading. The function may have swallowed it, and cannot repair it."""
        if self._failure is not None:
            raise self._failure

    def has_more(self) -> bool:
        """Whether there are records that the function has not requested."""
        self._since = perf_counter()
        return next(self, None) is not None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        self._ms += (perf_counter() - self._since) * 1000
        try:
            return self._following().records
        finally:
            self._since = perf_counter()

    def _following(self) -> SliceBatch:
        if self._open and self.at is not None:
            self._listener.returned(self.at)
            self._listener.worked(DoneRecords(self.at, None, self._ms))
        self._open, self._ms = False, 0.0
        self.check()
        try:
            self.at = next(self._batches)
        except StopIteration:
            raise
        except Exception as error:
            self._failure = error
            raise
        self._open = True
        self._listener.begins(self.at)
        return self.at
