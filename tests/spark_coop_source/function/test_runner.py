"""The user's function inside the read: its calls, its results, and its errors."""

import asyncio
import contextlib
import sys
import traceback
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from arrow_records import ALL, batch, points
from coordinator.errors import EnvironmentMismatchError, FetchTimeoutError, FunctionFailedError, TaskNotEndedError
from coordinator.progress.slices import Slice
from coordinator.values.key_hash import cuts, hash_key, hash_record
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.function import runner as function_runner
from spark_coop_source.function.attempts import DoneRecords
from spark_coop_source.function.rows import KeyRecords
from spark_coop_source.function.runner import MOST_WAITING, Listener, early_window, run
from spark_coop_source.function.slice_batches import SliceBatch, tables
from spark_coop_source.function.user_function import UserFunction, as_text

OUTPUT = StructType([StructField("key", BinaryType()), StructField("n", LongType(), nullable=False)])
Batches = Iterator[pa.RecordBatch]


@pytest.mark.parametrize(("concurrency", "batches"), [(1, 8), (1_024, 8_192), (16_384, 16_384 + MOST_WAITING)])
def test_thousands_of_coroutines_leave_no_more_ends_than_a_frame_holds(concurrency: int, batches: int) -> None:
    """Each key that waits when the time of the task is over has an end of its own."""
    assert early_window(concurrency).batches == batches


class Recorder(Listener):
    """Records the pieces that begin and end."""

    def __init__(self) -> None:
        self.begun: list[SliceBatch] = []
        self.returned_from: list[SliceBatch] = []
        self.done: list[DoneRecords] = []

    def begins(self, piece: SliceBatch) -> None:
        self.begun.append(piece)

    def returned(self, piece: SliceBatch) -> None:
        self.returned_from.append(piece)

    def worked(self, done: DoneRecords) -> None:
        self.done.append(done)


def function(call: Callable[..., object] | str, *, per_key: bool = False, concurrency: int = 1) -> UserFunction:
    return UserFunction(
        call if isinstance(call, str) else as_text(call), OUTPUT, "keys" if per_key else "batches", concurrency
    )


def made(of: UserFunction, *batches: pa.RecordBatch, slices: tuple[Slice, ...] = (ALL,)) -> list[tuple[bytes, int]]:
    """The rows that a function makes."""
    rows = [row for out in run(of, iter(batches), tables(slices)) for row in out.to_pylist()]
    return [(row["key"], row["n"]) for row in rows]


def counted(batch: pa.RecordBatch) -> pa.RecordBatch:
    """One row for each record."""
    return pa.RecordBatch.from_pydict({"n": batch.column("offset"), "key": batch.column("key")})


def each(batches: Batches) -> Batches:
    return map(counted, batches)


def of_key(key: bytes | None, batch: KeyRecords) -> pa.RecordBatch | None:
    return None if key == b"none" else pa.RecordBatch.from_pydict({"key": [key], "n": [len(batch)]})


async def of_key_async(key: bytes | None, batch: KeyRecords) -> pa.RecordBatch | None:
    await asyncio.sleep(0)
    return of_key(key, batch)


def test_a_function_of_batches_is_called_once_and_keeps_its_state() -> None:
    def numbered(batches: Batches) -> Batches:
        so_far = 0
        for each in batches:
            so_far += len(each)
            yield pa.RecordBatch.from_pydict({"key": [b""], "n": [so_far]})

    assert made(function(numbered), batch([b"a"] * 3), batch([]), batch([b"b"] * 4, first=3)) == [(b"", 3), (b"", 7)]


def test_columns_may_come_in_any_order() -> None:
    assert made(function(each), batch([b"a", b"b"])) == [(b"a", 0), (b"b", 1)]


def test_a_function_may_return_a_list() -> None:
    assert made(function(lambda batches: [counted(b) for b in batches]), batch([b"a"])) == [(b"a", 0)]


def test_rows_may_be_dropped_and_batches_be_empty() -> None:
    def only_a(batches: Batches) -> Batches:
        for each in batches:
            yield counted(each.filter(pc.equal(each.column("key"), b"a")))

    assert made(function(only_a), batch([b"b"]), batch([b"a", b"b"], first=1)) == [(b"a", 1)]


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("call", [of_key, of_key_async])
def test_a_function_of_a_key_gets_all_its_records_of_a_batch(call: Callable[..., object], concurrency: int) -> None:
    rows = made(
        function(call, per_key=True, concurrency=concurrency),
        batch([b"a", b"none", b"a", None, None]),
        batch([b"a", b"b"], first=5),
    )
    assert sorted(rows, key=str) == sorted([(b"a", 2), (None, 1), (None, 1), (b"a", 1), (b"b", 1)], key=str)
    assert [n for key, n in rows if key == b"a"] == [2, 1]


def test_each_batch_holds_one_slice_so_that_its_cost_is_known() -> None:
    slices = tuple(Slice(TopicPartition("orders", 0), hashes, OffsetRange(0, 100)) for hashes in cuts(4))
    recorder = Recorder()
    out = list(run(function(each), iter([batch([b"%d" % i for i in range(100)])]), tables(slices), recorder))
    assert [done.batch.of for done in recorder.done] == list(slices)
    assert [points([out]) for out in (done.batch.records for done in recorder.done)] == [
        [(row["key"], row["n"]) for row in batch.to_pylist()] for batch in out
    ]


class Stopped(Listener):
    """A task that must stop after its second batch, or second key."""

    def __init__(self) -> None:
        self.given = 0

    def goes_on(self) -> None:
        if self.given == 2:
            raise TaskNotEndedError("it stops")
        self.given += 1


@pytest.mark.parametrize(("per_key", "concurrency"), [(False, 1), (True, 1), (True, 3)])
def test_a_function_gets_nothing_more_in_a_task_that_stops(per_key: bool, concurrency: int) -> None:
    """Rule: leave-keeps-unconfirmed."""
    of = function(of_key if per_key else each, per_key=per_key, concurrency=concurrency)
    batches = [batch([b"a"]), batch([b"b"], first=1), batch([b"c"], first=2)]
    rows = list[pa.RecordBatch]()
    with pytest.raises(TaskNotEndedError, match="it stops"):
        rows.extend(run(of, iter(batches), tables([ALL]), Stopped()))
    assert {row["key"] for out in rows for row in out.to_pylist()} <= {b"a", b"b"}


@pytest.mark.parametrize(("per_key", "concurrency"), [(False, 1), (True, 1), (True, 3)])
def test_the_time_of_a_call_is_reported_for_every_record_once(per_key: bool, concurrency: int) -> None:
    recorder = Recorder()
    of = function(of_key if per_key else each, per_key=per_key, concurrency=concurrency)
    batches = [batch([b"a", b"b", b"a"]), batch([b"a"], first=3)]
    assert list(run(of, iter(batches), tables([ALL]), recorder))
    assert sorted(o for done in recorder.done for _, o in points([done.batch.records])) == [0, 1, 2, 3]
    assert all(done.ms >= 0 for done in recorder.done)
    for pieces in (recorder.begun, recorder.returned_from):
        assert sorted(points([piece.records])[0][1] for piece in pieces) == sorted(
            points([done.batch.records])[0][1] for done in recorder.done
        )


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("call", [of_key, of_key_async])
def test_in_a_trial_records_of_keys_come_one_by_one(call: Callable[..., object], concurrency: int) -> None:
    recorder = Recorder()
    of = function(call, per_key=True, concurrency=concurrency)
    batches = [batch([b"a", b"b", b"a"]), batch([b"a"], first=3)]
    list(run(of, iter(batches), tables([ALL]), recorder, by_record=True))
    each = [(b"a", 0), (b"b", 1), (b"a", 2), (b"a", 3)]
    assert [points([piece.records]) for piece in recorder.begun] == [[record] for record in each]
    assert [points([done.batch.records]) for done in recorder.done] == [[record] for record in each]


class Clock:
    """Seconds that a test sets; of the module, so that a function that was pickled by name moves the same clock."""

    now = 0.0

    @classmethod
    def passes(cls, ms: float) -> None:
        cls.now += ms / 1000


def ticking(batches: Batches) -> Batches:
    for each in batches:
        Clock.passes(3)
        yield counted(each)
        Clock.passes(4)


def test_the_time_of_reading_and_of_handing_on_is_not_the_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()

    def slowly() -> Batches:
        for offset in range(3):
            Clock.passes(100)
            yield batch([b"a"], first=offset)

    monkeypatch.setattr(function_runner, "perf_counter", lambda: Clock.now)
    for _ in run(function(f"{__name__}:ticking"), slowly(), tables([ALL]), recorder):
        Clock.passes(1_000)
    assert [done.ms for done in recorder.done] == pytest.approx([7, 7, 7])


def fails_on_b(batches: Batches) -> Batches:
    for each in batches:
        if b"b" in each.column("key").to_pylist():
            raise KeyError("no such customer")
        yield counted(each)


OF_B = f"(key hash {hash_record(b'b', 0):016x})"


def key_fails(key: bytes | None, batch: KeyRecords) -> None:
    if key == b"b":
        raise KeyError("no such customer")


async def key_fails_async(key: bytes | None, batch: KeyRecords) -> None:
    await asyncio.sleep(0)
    if key == b"b":
        raise KeyError("no such customer")


@pytest.mark.parametrize(
    ("of", "count", "where"),
    [
        pytest.param(function(fails_on_b), 3, "offsets 5-7", id="a function of batches"),
        pytest.param(function(fails_on_b), 1, "offset 5", id="a function of batches, one record"),
        pytest.param(function(key_fails, per_key=True), 3, f"offsets 5-7 {OF_B}", id="a function of a key"),
        pytest.param(function(key_fails, per_key=True), 1, f"offset 5 {OF_B}", id="a function of a key, one record"),
        pytest.param(function(key_fails, per_key=True, concurrency=4), 3, f"offsets 5-7 {OF_B}", id="many keys"),
        pytest.param(function(key_fails_async, per_key=True), 3, f"offsets 5-7 {OF_B}", id="async def"),
        pytest.param(
            function(key_fails_async, per_key=True, concurrency=4), 3, f"offsets 5-7 {OF_B}", id="async def, many keys"
        ),
    ],
)
def test_an_error_names_the_records_and_shows_the_users_frames_only(of: UserFunction, count: int, where: str) -> None:
    with pytest.raises(FunctionFailedError) as caught:
        made(of, batch([b"a"] * 5), batch([b"b"] * count, first=5))
    message = str(caught.value)
    assert f"raised KeyError, called with orders-0 {where}:" in message
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.count('raise KeyError("no such customer")') == 1, "shown once"
    assert message.count("  File ") == 1, "no frame is ours"
    assert "Remedy: " in message


def leaves(batches: Batches) -> Batches:
    for _ in batches:
        sys.exit("no more today")
    yield from ()


def key_leaves(key: bytes | None, batch: KeyRecords) -> None:
    sys.exit("no more today")


async def key_leaves_async(key: bytes | None, batch: KeyRecords) -> None:
    sys.exit("no more today")


@pytest.mark.parametrize(
    "of",
    [
        function(leaves),
        function(key_leaves, per_key=True),
        function(key_leaves, per_key=True, concurrency=4),
        function(key_leaves_async, per_key=True),
        function(key_leaves_async, per_key=True, concurrency=4),
    ],
)
def test_an_exit_does_not_end_the_worker_without_a_word(of: UserFunction) -> None:
    with pytest.raises(FunctionFailedError, match="raised SystemExit, called with orders-0 offsets 0-4"):
        made(of, batch([b"a"] * 5))


@pytest.mark.parametrize(
    ("result", "words"),
    [
        pytest.param({"key": [b"a"]}, "the columns key, not key, n", id="a column is missing"),
        pytest.param({"key": [b"a"], "n": [1], "m": [1]}, "the columns key, n, m, not key, n", id="a column too many"),
        pytest.param(
            {"key": [b"a"], "n": [1.5]}, "the column n of type double, not int64", id="a column of another type"
        ),
        pytest.param(
            {"key": [b"a"], "n": pa.array([None], pa.int64())}, "a null in the column n, which may hold none", id="null"
        ),
    ],
)
def test_output_must_match_the_schema(result: dict[str, object], words: str) -> None:
    def wrong(batches: Batches) -> Batches:
        for _ in batches:
            yield pa.RecordBatch.from_pydict(result)

    with pytest.raises(FunctionFailedError) as caught:
        made(function(wrong), batch([b"a", b"b"], first=7))
    assert caught.value.what.endswith(f"does not fit its schema, called with orders-0 offsets 7-8: it made {words}")


def test_one_key_at_a_time_comes_in_the_order_of_hashes() -> None:
    """Where the time of a task is over, all later keys end together: one lane, however many records a key has."""
    keys = [b"k%d" % (number % 20 if number < 40 else 7) for number in range(80)]
    calls = [key for key, _ in made(function(lambda _, records: counted(records.arrow), per_key=True), batch(keys))]
    found = [hash_key(key) for key in dict.fromkeys(calls)]
    assert len(found) == 20
    assert found == sorted(found)


def test_output_that_declares_its_schema_is_looked_at_all_the_same() -> None:
    """Arrow itself does not look whether a column that may hold no null holds one."""
    declared = pa.schema([pa.field("key", pa.binary()), pa.field("n", pa.int64(), nullable=False)])

    def wrong(batches: Batches) -> Batches:
        for _ in batches:
            yield pa.RecordBatch.from_arrays([pa.array([b"a"]), pa.array([None], pa.int64())], schema=declared)

    with pytest.raises(FunctionFailedError, match="a null in the column n, which may hold none"):
        made(function(wrong), batch([b"a"]))


@pytest.mark.parametrize(
    ("call", "per_key", "words"),
    [
        pytest.param(lambda batches: [list(batches)], False, "made a builtins.list, not a pyarrow.Rec", id="rows"),
        pytest.param(lambda batches: [None for _ in batches], False, "made None, not a", id="None among batches"),
        pytest.param(lambda batches: None, False, "not an iterator of record batches", id="nothing at all"),
        pytest.param(lambda key, records: [1], True, "a value of type int as a row", id="numbers for a key"),
        pytest.param(lambda: None, False, "takes 0 positional arguments but 1 was given", id="no argument"),
        pytest.param(lambda batches: [], False, "ended before it had asked for all its records", id="never asks"),
        pytest.param(lambda batches: [counted(next(batches))], False, "ended before it had asked", id="ends early"),
    ],
)  # fmt: skip
def test_a_function_of_another_form_is_a_named_error(call: Callable[..., object], per_key: bool, words: str) -> None:
    with pytest.raises(FunctionFailedError) as caught:
        made(function(call, per_key=per_key), batch([b"a"]), batch([b"a"], first=1))
    assert words in caught.value.what


def swallows(batches: Batches) -> Batches:
    with contextlib.suppress(FetchTimeoutError):
        yield from map(counted, batches)


@pytest.mark.parametrize("of", [function(each), function(swallows), function(of_key, per_key=True, concurrency=2)])
def test_an_error_of_reading_is_no_error_of_the_function(of: UserFunction) -> None:
    def breaks() -> Batches:
        yield batch([b"a"])
        raise FetchTimeoutError("no progress")

    with pytest.raises(FetchTimeoutError, match="no progress"):
        list(run(of, breaks(), tables([ALL])))


def test_a_function_that_cannot_be_loaded_here_is_a_named_error() -> None:
    with pytest.raises(EnvironmentMismatchError, match="cannot be loaded where a task runs: it cannot be imported"):
        made(function("no_such_module:f"), batch([b"a"]))
