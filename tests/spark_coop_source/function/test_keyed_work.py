"""Many keys at once: each in order, none held up by another, bounded, and no thread outlives its task."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import NoReturn

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arrow_records import ALL, batch, points
from coordinator.progress.failing import FailingRecord
from coordinator.values.key_hash import hash_record
from equal_hashes import twin
from spark_coop_source.function.attempts import DoneRecords, SyncWork, attempt, attempt_async, calls
from spark_coop_source.function.keyed_work import keyed_work
from spark_coop_source.function.slice_batches import SliceBatch, SliceTable, by_key
from spark_coop_source.function.window import Window
from spark_coop_source.function.workers import Loop, Opened, Threads

PATIENCE_S = 20
WIDE = Window()
TABLE = SliceTable([ALL])
Keys = list[bytes | None]


def pieces(*keys: Keys) -> Iterator[SliceBatch]:
    """The pieces of some batches, one after another."""
    first = 0
    for of_batch in keys:
        yield from by_key(batch(of_batch, first), TABLE)
        first += len(of_batch)


@dataclass
class Decided:
    """Ends the task at an error, and when `ends` says so."""

    ends: Callable[[], bool] = lambda: False
    withdrawn: list[SliceBatch] = field(default_factory=list)

    @property
    def over(self) -> bool:
        return self.ends()

    def waits(self, seconds: float) -> NoReturn:
        raise AssertionError("nothing waits for another attempt")

    def after(self, failed: SliceBatch, error: BaseException, earlier: FailingRecord | None) -> NoReturn:
        raise error

    def defer(self, record: FailingRecord) -> NoReturn:
        raise AssertionError("nothing waits for another attempt")

    def withdraw(self, batch: SliceBatch) -> None:
        self.withdrawn.append(batch)


def threads(work: SyncWork, concurrency: int) -> Opened:
    return partial(Threads, lambda job: attempt(work, calls(job.batch)), concurrency)


def loop(work: SyncWork, concurrency: int) -> Opened:
    async def yielding(piece: SliceBatch) -> pa.RecordBatch | None:
        await asyncio.sleep(0)
        return work(piece)

    return partial(Loop, lambda job: attempt_async(yielding, calls(job.batch)), concurrency)


def working(
    batches: Iterator[SliceBatch], opened: Opened, window: Window = WIDE, decided: Decided | None = None
) -> Generator[DoneRecords, None, None]:
    yield from keyed_work(batches, opened, window, decided or Decided(), perf_counter)


BOTH = pytest.mark.parametrize("by", [threads, loop])


def ours() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("coop-kafka-key")]


@dataclass
class Recorder:
    """Work that notes its arguments, and the calls that ran at the same time."""

    seen: list[tuple[bytes | None, int]] = field(default_factory=list)
    running: Counter[bytes | None] = field(default_factory=Counter)
    together: int = 0  # keys at once, at most
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, piece: SliceBatch) -> pa.RecordBatch:
        with self.lock:
            self.running[piece.key] += 1
            assert self.running[piece.key] == 1 or piece.key is None, "one key, two threads"
            self.together = max(self.together, self.running.total())
        with self.lock:
            self.seen += points([piece.records])
            self.running[piece.key] -= 1
        return piece.records


@BOTH
@given(
    st.lists(st.lists(st.sampled_from([b"a", b"b", b"c", None]), min_size=1, max_size=8), max_size=8),
    st.integers(2, 5),
    st.sampled_from([Window(), Window(rows=1), Window(rows=5), Window(bytes=1)]),
)
def test_every_record_is_worked_on_once_and_a_key_in_order(
    by: Callable[[SyncWork, int], Opened], keys: list[Keys], concurrency: int, window: Window
) -> None:
    work = Recorder()
    done = list(working(pieces(*keys), by(work, concurrency), window))
    made = points(each.made for each in done if each.made is not None)
    wanted = [(key, offset) for offset, key in enumerate(key for of_batch in keys for key in of_batch)]
    assert sorted(made, key=lambda record: record[1]) == wanted
    for order in (made, work.seen):
        for key in (b"a", b"b", b"c"):
            assert all(first < then for first, then in pairwise(o for k, o in order if k == key))
    assert work.together <= concurrency
    assert ours() == []


@BOTH
@given(
    st.lists(st.lists(st.sampled_from([b"a", b"b", b"c", None]), min_size=1, max_size=8), max_size=8),
    st.integers(2, 5),
    st.integers(0, 20),
)
def test_a_task_that_must_end_withdraws_the_last_records_of_keys_only(
    by: Callable[[SyncWork, int], Opened], keys: list[Keys], concurrency: int, after: int
) -> None:
    work = Recorder()
    decided = Decided(lambda: len(work.seen) >= after)
    done = list(working(pieces(*keys), by(work, concurrency), Window(batches=9), decided))
    assert points(each.batch.records for each in done) == points(each.made for each in done if each.made is not None)
    withdrawn = {(piece.key, piece.key_hash): piece.first for piece in decided.withdrawn}
    for offset, key in enumerate(key for of_batch in keys for key in of_batch):
        first = withdrawn.get((key, hash_record(key, offset)), len(keys) * 8)
        assert ((key, offset) in work.seen) == (offset < first), "all before the first that was withdrawn, none behind"
    assert len(work.seen) == len(set(work.seen))


def test_as_many_keys_as_threads_are_worked_on_at_once() -> None:
    barrier = threading.Barrier(4)

    def meet(piece: SliceBatch) -> None:
        barrier.wait(PATIENCE_S)  # breaks, and raises, unless four are here

    keys: list[bytes | None] = [b"%d" % i for i in range(8)]
    assert len(list(working(pieces(keys), threads(meet, 4)))) == 8


def test_a_slow_key_holds_up_no_other() -> None:
    """The slow key's first record waits until every record of the others is done, also those that came later."""
    others = threading.Semaphore(0)
    worked: list[tuple[bytes | None, int]] = []

    def work(piece: SliceBatch) -> None:
        if piece.key != b"slow":
            worked.extend(points([piece.records]))
            others.release()
        elif piece.records.column("offset")[0].as_py() == 0:
            while len(worked) < 30:
                assert others.acquire(timeout=PATIENCE_S), "the others wait for the slow key"

    batches: list[Keys] = [[b"slow", b"a", b"b", b"c"]] * 10
    records = points(done.batch.records for done in working(pieces(*batches), threads(work, 2)))
    keys = [key for key, _ in records]
    assert keys.index(b"slow") >= 27, "what was released last may come after it"
    assert Counter(keys) == {b"slow": 10, b"a": 10, b"b": 10, b"c": 10}


@pytest.mark.parametrize(
    "window",
    [pytest.param(Window(rows=10), id="rows"), pytest.param(Window(bytes=10_800), id="bytes")],
)
def test_no_more_is_taken_in_than_the_window_holds(window: Window) -> None:
    """While the first record of a key is worked on, only so many are read behind it; then all the others are."""
    taken: list[int] = []
    too_many = threading.Event()

    def coming() -> Iterator[SliceBatch]:
        for offset in range(40):
            taken.append(offset)
            if len(taken) > 11:
                too_many.set()
            yield SliceBatch(batch([b"slow"], offset, b"x" * 1_000), ALL, 1)

    def work(piece: SliceBatch) -> None:
        if piece.records.column("offset")[0].as_py() == 0:
            assert not too_many.wait(0.2)

    done = list(working(coming(), threads(work, 3), window))
    assert [offset for _, offset in points(each.batch.records for each in done)] == list(range(40))
    assert too_many.is_set()
    assert 2 <= len(done) < 40, "what waited together is one call"


def test_an_error_ends_the_work_and_its_threads() -> None:
    begun: list[bytes | None] = []

    def work(piece: SliceBatch) -> None:
        begun.append(piece.key)
        if piece.key == b"bad":
            raise ValueError("no such customer")

    batches: list[Keys] = [[b"bad"] if i == 0 else [b"%d" % i] for i in range(2_000)]
    with pytest.raises(ValueError, match="no such customer"):
        list(working(pieces(*batches), threads(work, 2), Window(rows=10)))
    assert len(begun) < 100, "nothing new is begun"
    assert ours() == []


def test_an_error_of_joining_waiting_records_reaches_the_task() -> None:
    held = threading.Event()

    def coming() -> Iterator[SliceBatch]:
        *first, last = pieces([b"a"], [b"a"], [b"a"])
        yield from first
        yield replace(last, records=last.records.select(["key", "offset"]))
        held.set()

    with pytest.raises(pa.ArrowInvalid, match="Schema"):
        list(working(coming(), threads(lambda _: held.wait(PATIENCE_S) and None, 2)))
    assert ours() == []


def test_keys_that_hash_alike_are_worked_on_one_by_one_key() -> None:
    key = b"customer-0000000000000000-victim"
    barrier = threading.Barrier(2)

    def meet(piece: SliceBatch) -> None:
        assert {each for each, _ in points([piece.records])} == {piece.key}
        barrier.wait(PATIENCE_S)

    batches: list[Keys] = [[key], [twin(key)]]
    assert len(list(working(pieces(*batches), threads(meet, 2)))) == 2


def test_an_exit_from_the_function_is_not_waited_for_forever() -> None:
    def leave(piece: SliceBatch) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        list(working(pieces([b"a", b"b"]), threads(leave, 2)))
    assert ours() == []


@BOTH
def test_a_task_that_is_ended_early_leaves_no_thread(by: Callable[[SyncWork, int], Opened]) -> None:
    batches: list[Keys] = [[b"%d" % i] for i in range(100)]
    results = working(pieces(*batches), by(Recorder(), 3), Window(rows=1))
    next(results)
    results.close()
    assert ours() == []


def test_an_error_of_reading_reaches_the_task() -> None:
    def broken() -> Iterator[SliceBatch]:
        yield from pieces([b"a", b"b"])
        raise OSError("no broker")

    with pytest.raises(OSError, match="no broker"):
        list(working(broken(), threads(Recorder(), 2)))
    assert ours() == []
