"""Runs the user's function of `mapInRead` over the records that a task reads.

It calls the function in one of three ways: once, with an iterator of all batches; key by key; or for many keys at once
(`keyed_work`). Knows the forms of the function; nothing of Kafka, options or Redis. Runs in executor workers.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Protocol, Self

import pyarrow as pa

from coordinator.subscription import TopicPartition
from spark_coop_source.function.call import RAISED, FunctionCall
from spark_coop_source.function.keyed_work import Done, Window, keyed_work, timed
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
from spark_coop_source.select.hash_column import offsets_of


class Listener:
    """Called before and after each batch, on the task's own thread. This one does nothing."""

    def begins(self, batch: SliceBatch) -> None:
        """The function gets this batch next. No other call runs meanwhile."""

    def worked(self, done: Done) -> None:
        """The function has returned from a batch."""


SILENT = Listener()

WAITING_KEYS = 8
"""So many keys for each thread may wait for it, in a task that may end early: each of them may be withdrawn."""


Cut = Callable[[pa.RecordBatch, SliceTable], Iterator[SliceBatch]]


class Ending(Protocol):
    """Ends the calls of the function when the time of the task is over."""

    @property
    def over(self) -> bool:
        """Whether the time of the task is over."""

    def before_key(self, tp: TopicPartition, key_hash: int, *, ahead: bool) -> bool:
        """Whether the function may still get the records of a key, in the order of `by_key`."""

    def withdraw(self, tp: TopicPartition, key_hash: int, offset: int) -> None:
        """The function did not get the records of a key from this offset on."""


def run(
    function: UserFunction,
    batches: Iterator[pa.RecordBatch],
    slices: Tables,
    listener: Listener = SILENT,
    *,
    by_record: bool = False,
    ending: "Ending | None" = None,
) -> Iterator[pa.RecordBatch]:
    """The output of `function` for `batches`, each of one partition; with `by_record` keys come one record at a time.

    `ending`: may leave out keys, if the function gets single keys.

    Raises:
        MapInReadError: the function raised, or its output does not fit its schema.
        EnvironmentMismatchError: this process cannot load the function.
    """
    call = FunctionCall.of(function)
    cut = (each_record if by_record else by_key) if function.per_key else by_slice
    cuts = _cuts(batches, cut, slices, ending)
    if not function.per_key:
        yield from _over_all(call, cuts, listener)
    elif by_record or function.concurrency == 1:
        yield from _made(_one_by_one(cuts, call, listener), listener)
    elif ending is None:
        yield from _made(keyed_work(cuts, call.on_key, function.concurrency, Window()), listener)
    else:
        window = Window(batches=WAITING_KEYS * function.concurrency)
        work = keyed_work(cuts, call.on_key, function.concurrency, window, lambda: ending.over)
        yield from _made(_kept(work, ending), listener)


def _cuts(batches: Iterator[pa.RecordBatch], cut: Cut, slices: Tables, ending: Ending | None) -> Iterator[SliceBatch]:
    for batch in batches:
        for each in cut(batch, slices[partition_of(batch)]) if len(batch) else ():
            tp, key_hash = each.of.topic_partition, each.key_hash
            if ending and key_hash is not None and not ending.before_key(tp, key_hash, ahead=each.ahead):
                break
            yield each


def _kept(work: Iterator[Done], ending: Ending) -> Iterator[Done]:
    """The work that was done. Of a key that was withdrawn, the task ends before its records."""
    for done in work:
        if done.worked:
            yield done
        elif done.batch.key_hash is not None:
            tp, first = done.batch.of.topic_partition, int(offsets_of(done.batch.records)[0])
            ending.withdraw(tp, done.batch.key_hash, first)


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
