"""Runs the user's function of `mapInRead` over the records that a task reads.

It calls the function in one of three ways: once, with an iterator of all batches; key by key; or for many keys at once
(`keyed_work`). Knows the forms of the function; nothing of Kafka, options or Redis. Runs in executor workers.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Self

import pyarrow as pa

from spark_coop_source.function.call import RAISED, FunctionCall
from spark_coop_source.function.keyed_work import Done, Window, keyed_work, timed
from spark_coop_source.function.slice_batches import SliceBatch, Tables, by_key, by_slice, each_record, partition_of
from spark_coop_source.function.user_function import UserFunction


class Listener:
    """Called before and after each batch, on the task's own thread. This one does nothing."""

    def begins(self, batch: SliceBatch) -> None:
        """The function gets this batch next. No other call runs meanwhile."""

    def worked(self, done: Done) -> None:
        """The function has returned from a batch."""


SILENT = Listener()


def run(
    function: UserFunction,
    batches: Iterator[pa.RecordBatch],
    slices: Tables,
    listener: Listener = SILENT,
    *,
    by_record: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The output of `function` for `batches`, each of one partition; with `by_record` keys come one record at a time.

    Raises:
        MapInReadError: the function raised, or its output does not fit its schema.
        EnvironmentMismatchError: this process cannot load the function.
    """
    call = FunctionCall.of(function)
    cut = (each_record if by_record else by_key) if function.per_key else by_slice
    cuts = (each for batch in batches if len(batch) for each in cut(batch, slices[partition_of(batch)]))
    if not function.per_key:
        yield from _over_all(call, cuts, listener)
    elif by_record or function.concurrency == 1:
        yield from _made(_one_by_one(cuts, call, listener), listener)
    else:
        yield from _made(keyed_work(cuts, call.on_key, function.concurrency, Window()), listener)


def _one_by_one(batches: Iterator[SliceBatch], call: FunctionCall, listener: Listener) -> Iterator[Done]:
    for batch in batches:
        listener.begins(batch)
        yield timed(call.on_key, batch)


def _made(work: Iterator[Done], listener: Listener) -> Iterator[pa.RecordBatch]:
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
            self._listener.worked(Done(self.at, None, self._ms))
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
