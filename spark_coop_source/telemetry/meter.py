"""Measures the cost of the slices of a task while they are read and worked on.

    reading    |==batch==|    |==batch==|       split by rows among the slices of the partition
    function             |--|           |--|    all of it is the cost of the slice, or of the key, of the batch
    reports    ^begun                      ^finished, and a sign of life each second between them
    first rows          ^when the first records go to Spark; reported for one slice of a task without a function

    calls           |-a-|-b-|      in each report; a thread sends one each second, for the function may never return

In a trial that takes records one by one, the meter reports each record before the function gets it.
A slice is finished when its partition is read to the end and the function has returned from its records.
Knows slices and clocks; nothing of the receiver, or of Kafka. Runs in executor workers: on the task's own thread, but
calls on the threads of the function, and signs of life on a thread of their own.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import nlargest
from threading import Event, RLock, Thread
from time import perf_counter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from coordinator.plan.cost.telemetry import MOST_AT, MOST_KEYS, KeyAt, KeyCost, SliceCost
from coordinator.progress.slices import Slice
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.decode.arrow_columns import numbers
from spark_coop_source.function.attempts import DoneRecords
from spark_coop_source.function.runner import Listener
from spark_coop_source.function.slice_batches import SliceBatch, SliceTable, Tables
from spark_coop_source.select.hash_column import hashes_of, offsets_of

ALIVE_S = 1.0
"""The least time between two signs of life of one slice."""

SAMPLE = 1_024
"""Without a function, about so many records of a batch are hashed to guess how its rows are spread over slices."""

MEASURED = ("key", "offset")
"""The columns that the meter needs to share out the records of a batch among slices."""

_MOST_KEYS_KEPT = 2_048

Send = Callable[[SliceCost], None]
MeteredLane = tuple[TopicPartition, HashRange]


class SliceMeter(Listener):
    """The costs of one attempt of a task."""

    def __init__(
        self,
        slices: Tables,
        send: Send,
        *,
        with_function: bool,
        singly: bool = False,
        filtered: Mapping[TopicPartition, int] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """`singly`: a struck lane is tried record by record (rule: struck-lane-apart).

        `check` raises if the task must stop.
        `filtered` counts the records of each partition that the filter dropped so far; another thread may count.
        """
        self._filtered = Counter[TopicPartition]() if filtered is None else filtered
        self._tables = slices
        self._send, self._check = send, check
        self._with_function, self._singly = with_function, singly
        self._lock = RLock()  # guards calls, the costs of keys, and the order of reports
        self._calls: dict[int, SliceBatch] = {}  # under way, each by its `id`
        self._accounts = {s: _Account(s) for table in slices.values() for s in table.slices}
        self._slices_of: dict[MeteredLane, list[Slice]] = {}
        for s in self._accounts:
            self._slices_of.setdefault(_lane(s), []).append(s)
        self._unworked: dict[MeteredLane, int] = {}  # records in or before the function
        self._read: set[TopicPartition] = set()  # partitions that were read to the end
        self._began = perf_counter()
        self._hands_on = with_function  # or has reported that it does

    def reading(self, tp: TopicPartition, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches of one partition, and their reading measured."""
        table = self._tables[tp]
        for s in table.slices:
            self._report(self._accounts[s], perf_counter())
        while (batch := self._timed(table, batches)) is not None:
            self.goes_on()
            yield batch
        self._read.add(tp)
        for s in table.slices:
            self._finish(s)

    def goes_on(self) -> None:
        """See `Listener.goes_on`."""
        self._check()

    def hands_on(self) -> None:
        """Report once when the first records go to the JVM: the work behind the read begins there."""
        if self._hands_on:
            return
        account = next((a for a in self._accounts.values() if a.rows), None)
        if account is not None:
            self._hands_on, now = True, perf_counter()
            account.handed_ms = (now - self._began) * 1000
            self._report(account, now)

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Report calls under way each second, while they last."""
        ended = Event()
        thread = Thread(target=self._beat, args=(ended,), name="coop-kafka-alive", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _beat(self, ended: Event) -> None:
        while not ended.wait(ALIVE_S):
            with self._lock:
                for of in {batch.of for batch in self._calls.values()}:
                    self._report(self._accounts[of], perf_counter())

    def begins(self, batch: SliceBatch) -> None:
        """The function gets this batch next; a record of a trial is reported before."""
        if self._singly or batch.key_hash is not None:
            with self._lock:
                self._calls[id(batch)] = batch
                if self._singly:
                    self._report(self._accounts[batch.of], perf_counter())

    def returned(self, batch: SliceBatch) -> None:
        """The function has returned from this batch, or has failed."""
        with self._lock:
            self._calls.pop(id(batch), None)

    def worked(self, done: DoneRecords) -> None:
        """Add the time of the function to the slice, and to the key."""
        account = self._accounts[done.batch.of]
        account.function_ms += done.ms
        if done.batch.key_hash is not None:
            with self._lock:
                account.add_key(KeyCost(done.batch.key_hash, done.ms, len(done.batch.records)))
        self._unworked[_lane(account.of)] -= len(done.batch.records)
        for s in self._slices_of[_lane(account.of)]:
            self._finish(s)
        self._alive(account)

    def ended(self) -> None:
        """The task has ended, perhaps before the planned ends of its slices: no slice is under way."""
        left = dict(self._unworked) if self._with_function else {}
        for s, account in sorted(self._accounts.items(), reverse=True):  # the last records of a lane are left out
            if not account.finished:
                left_out = min(account.rows, left.get(_lane(s), 0))
                account.leave_out(left_out)
                left[_lane(s)] = left.get(_lane(s), 0) - left_out
                account.finished = True
                self._report(account, perf_counter())

    def _timed(self, table: SliceTable, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        began = perf_counter()
        batch = next(batches, None)
        ms = (perf_counter() - began) * 1000
        longest = max(table.slices, key=lambda s: len(s.offsets))
        self._accounts[longest].filtered = self._filtered[longest.topic_partition]
        counts = _counts(table, batch, exact=self._with_function)
        shares = counts / counts.sum() if counts.any() else np.full(len(counts), 1 / len(counts))
        for s, count, share in zip(table.slices, counts.tolist(), shares.tolist(), strict=True):
            account = self._accounts[s]
            account.read_ms += ms * share
            if batch is not None and count:
                account.rows += count
                account.bytes += round(_payload(batch) * share)
                self._unworked[_lane(s)] = self._unworked.get(_lane(s), 0) + count
                self._alive(account)
        return batch

    def _finish(self, of: Slice) -> None:
        account = self._accounts[of]
        left = self._unworked.get(_lane(of), 0) if self._with_function else 0
        if left == 0 and of.topic_partition in self._read and not account.finished:
            account.finished = True
            self._report(account, perf_counter())

    def _alive(self, account: "_Account") -> None:
        now = perf_counter()
        if now - account.reported_at >= ALIVE_S and not account.finished:
            self._report(account, now)

    def _report(self, account: "_Account", now: float) -> None:
        with self._lock:
            account.reported_at = now
            self._send(account.cost(() if account.finished else self._at(account.of)))

    def _at(self, of: Slice) -> tuple[KeyAt, ...]:
        """The calls under way in a slice; none if they are many, or one of them has several keys."""
        calls = [batch for batch in self._calls.values() if batch.of == of]
        known = [_key_at(batch) for batch in calls] if len(calls) <= MOST_AT else []
        return tuple(sorted(at for at in known if at)) if None not in known else ()


@dataclass(slots=True)
class _Account:
    """The cost of one slice so far."""

    of: Slice
    rows: int = 0
    bytes: int = 0
    read_ms: float = 0.0
    function_ms: float = 0.0
    keys: dict[int, KeyCost] = field(default_factory=dict)
    finished: bool = False
    handed_ms: float | None = None
    filtered: int = 0
    reported_at: float = 0.0

    def add_key(self, key: KeyCost) -> None:
        """Add the cost of a key. With too many keys, the cheap ones are dropped."""
        before = self.keys.get(key.key_hash, KeyCost(key.key_hash, 0.0, 0))
        self.keys[key.key_hash] = KeyCost(key.key_hash, before.ms + key.ms, before.rows + key.rows)
        if len(self.keys) > _MOST_KEYS_KEPT:
            self.keys = {kept.key_hash: kept for kept in self._costliest(_MOST_KEYS_KEPT // 2)}

    def leave_out(self, rows: int) -> None:
        """The function did not get so many of the records that were read."""
        if rows:
            self.bytes -= round(self.bytes * rows / self.rows)
            self.rows -= rows

    def cost(self, at: tuple[KeyAt, ...]) -> SliceCost:
        keys = tuple(self._costliest(MOST_KEYS))
        tp, hashes, offsets = self.of.topic_partition, self.of.hashes, self.of.offsets
        return SliceCost(
            tp,
            hashes,
            offsets,
            self.rows,
            self.bytes,
            self.read_ms,
            self.function_ms,
            keys,
            self.finished,
            at,
            self.handed_ms,
            self.filtered,
        )

    def _costliest(self, count: int) -> list[KeyCost]:
        return nlargest(count, self.keys.values(), key=lambda key: key.ms)


def _lane(of: Slice) -> MeteredLane:
    return of.topic_partition, of.hashes


def _counts(table: SliceTable, batch: pa.RecordBatch | None, *, exact: bool) -> NDArray[np.int64]:
    """The number of the batch's records in each slice, or a guess that sums up to about all."""
    if batch is None or not len(batch) or len(table.slices) == 1:
        return np.array([len(batch or ())] * len(table.slices), np.int64)
    step = 1 if exact else max(1, len(batch) // SAMPLE)
    some = batch if step == 1 else batch.select(["key", "offset"]).take(numbers(np.arange(0, len(batch), step)))
    counts = np.bincount(table.numbers(offsets_of(some), hashes_of(some)), minlength=len(table.slices))
    return np.round(counts * (len(batch) / len(some))).astype(np.int64)


def _key_at(batch: SliceBatch) -> KeyAt | None:
    """The key of a batch, and its offsets; None if it has several keys."""
    offsets, key_hash = offsets_of(batch.records), batch.key_hash
    if key_hash is None:
        hashes = hashes_of(batch.records)
        if (hashes != hashes[0]).any():
            return None
        key_hash = int(hashes[0])
    return KeyAt(key_hash, int(offsets[0]), int(offsets[-1]) + 1)


def _payload(batch: pa.RecordBatch) -> int:
    return sum(int(batch.column(name).nbytes) for name in ("key", "value") if name in batch.schema.names)
