"""Failing keys: attempts, back-off, and each record made, skipped, sent away or left for a later batch; never twice."""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from arrow_records import ALL, batch, points
from coordinator.errors import FunctionFailedError
from coordinator.progress.failing import FailingRecord
from coordinator.values.key_hash import hash_record
from coordinator.values.subscription import TopicPartition
from spark_coop_source.function.call import FunctionCall
from spark_coop_source.function.decisions import Decisions
from spark_coop_source.function.error_policy import ErrorPolicy, Then
from spark_coop_source.function.keyed_work import Again, NextRecord
from spark_coop_source.function.on_error import FailedRecord
from spark_coop_source.function.rows import KeyRecords
from spark_coop_source.function.runner import run
from spark_coop_source.function.slice_batches import SliceBatch, tables
from spark_coop_source.function.user_function import UserFunction, as_text
from spark_coop_source.task.ending import TaskEnds
from spark_coop_source.task.reads import RecordsRead

OUTPUT = StructType([StructField("key", BinaryType()), StructField("offset", LongType())])
TP = ALL.topic_partition
NOW_MS = 1_000_000


@dataclass
class Ends:
    """The end of a task, noted."""

    left_ms: float = 10_000.0
    over: bool = False
    before: int = 0  # attempts in earlier batches
    skipped: int = 0
    dead_lettered: int = 0
    deferred: list[FailingRecord] = field(default_factory=list)

    def before_key(self, tp: TopicPartition, key_hash: int, *, ahead: bool) -> bool:
        return True

    def withdraw(self, tp: TopicPartition, key_hash: int, offset: int, *, whole: bool) -> None:
        raise AssertionError("nothing is withdrawn")

    def attempts(self, tp: TopicPartition, key_hash: int, offset: int) -> int:
        return self.before

    def defer(self, record: FailingRecord) -> None:
        self.deferred.append(record)


@dataclass
class Letters:
    """Dead letters, noted."""

    sent: list[tuple[int, str, str, int]] = field(default_factory=list)

    def send(self, row: pa.RecordBatch, error: str, message: str, attempts: int) -> None:
        self.sent.append((row.column("offset")[0].as_py(), error, message, attempts))


def decisions(policy: ErrorPolicy | None, ending: Ends | None = None, letters: Letters | None = None) -> Decisions:
    call = FunctionCall(lambda key, records: None, pa.schema([]), UserFunction("", OUTPUT, "keys", on_error=policy))
    return Decisions(call, ending, letters, lambda: NOW_MS, lambda: 0.0)


def record(offset: int = 7, key: bytes = b"a") -> SliceBatch:
    return SliceBatch(batch([key], offset), ALL, hash_record(key, offset))


def failing(attempts: int, next_ms: int = NOW_MS, *, parked: bool = False) -> FailingRecord:
    return FailingRecord(TP, hash_record(b"a", 7), 7, attempts, next_ms, parked, "ValueError", "no such customer")


ERROR = ValueError("no such customer")


def test_an_attempt_that_fits_into_the_time_of_the_task_is_made_in_it() -> None:
    ends = Ends(left_ms=401)
    made = decisions(ErrorPolicy(backoff_ms=200), ends)
    first = made.after(record(), ERROR, None)
    assert first == Again(0.2, failing(1, NOW_MS + 200))
    assert made.after(record(), ERROR, first.record) == Again(0.4, failing(2, NOW_MS + 400))
    assert ends.deferred == []


def test_an_attempt_that_does_not_fit_is_deferred() -> None:
    ends = Ends(left_ms=200)
    assert decisions(ErrorPolicy(backoff_ms=200), ends).after(record(), ERROR, None) is NextRecord.ENDED
    assert ends.deferred == [failing(1, NOW_MS + 200)]


def test_attempts_of_earlier_batches_count() -> None:
    ends = Ends(before=2)
    assert decisions(ErrorPolicy(backoff_ms=200), ends).after(record(), ERROR, None) == Again(
        0.8, failing(3, NOW_MS + 800)
    )
    ends = Ends(before=4)
    assert decisions(ErrorPolicy(attempts=5, then="skip"), ends).after(record(), ERROR, None) is NextRecord.GO_ON


def test_where_a_task_may_not_end_early_every_attempt_is_made_in_it() -> None:
    assert decisions(ErrorPolicy(backoff_ms=86_400_000, backoff_max_ms=86_400_000)).after(
        record(), ERROR, None
    ) == Again(86_400, failing(1, NOW_MS + 86_400_000))


def test_the_back_off_doubles_up_to_its_limit_and_keys_vary_it() -> None:
    policy = ErrorPolicy(backoff_ms=200, backoff_max_ms=1_000)
    assert [policy.delay_ms(attempts, 0.0) for attempts in (1, 2, 3, 4, 1_000)] == [200, 400, 800, 1_000, 1_000]
    assert [policy.delay_ms(attempts, 1.0) for attempts in (1, 2, 3, 4)] == [100, 200, 400, 500]


def test_after_the_last_attempt__skip__counts_and_logs_once(caplog: pytest.LogCaptureFixture) -> None:
    ends = Ends()
    made = decisions(ErrorPolicy(attempts=1, then="skip"), ends)
    with caplog.at_level(logging.WARNING):
        for offset in (7, 8, 9):
            assert made.after(record(offset), ERROR, None) is NextRecord.GO_ON
        made.close()
    assert ends.skipped == 3
    (line,) = caplog.messages
    assert line == (
        "3 records skipped: the function fails on them; first orders-0 offset 7, 'ValueError: no such customer'"
    )


def test_after_the_last_attempt__park__ends_the_key_there() -> None:
    ends = Ends()
    assert decisions(ErrorPolicy(attempts=1, then="park"), ends).after(record(), ERROR, None) is NextRecord.ENDED
    assert ends.deferred == [failing(1, parked=True)]


def test_park_where_no_task_may_end_early_is_a_named_error() -> None:
    with pytest.raises(FunctionFailedError, match="its key cannot be parked in a task that may not end early"):
        decisions(ErrorPolicy(attempts=1, then="park")).after(record(), ERROR, None)


def test_after_the_last_attempt__dead_letter__sends_the_record_with_its_error() -> None:
    ends, letters = Ends(before=4), Letters()
    made = decisions(ErrorPolicy(attempts=5, then="dead_letter", topic="dead"), ends, letters)
    assert made.after(record(), ERROR, None) is NextRecord.GO_ON
    assert letters.sent == [(7, "ValueError", "no such customer", 5)]
    assert ends.dead_lettered == 1


def test_a_dead_letter_has_more_of_a_long_message_than_redis() -> None:
    ends, letters = Ends(), Letters()
    made = decisions(ErrorPolicy(attempts=1, then="dead_letter", topic="dead"), ends, letters)
    assert made.after(record(), ValueError("x" * 5_000), None) is NextRecord.GO_ON
    assert letters.sent == [(7, "ValueError", "x" * 1_000, 1)]


def test_after_the_last_attempt__fail__names_the_attempts() -> None:
    with pytest.raises(FunctionFailedError, match=r"raised ValueError, called with orders-0 offset 7 .* at attempt 3:"):
        decisions(ErrorPolicy(attempts=3)).after(record(), ERROR, failing(2))


class OddError(ValueError):
    """An exception whose text cannot be made."""

    def __str__(self) -> str:
        raise KeyError("no text")


def test_an_exception_without_a_text_is_no_other_failure() -> None:
    ends = Ends(left_ms=0)
    decisions(ErrorPolicy(), ends).after(record(), OddError(), None)
    assert ends.deferred[0].message == "its text cannot be made (KeyError)"


def busy(error: BaseException) -> bool:
    return "busy" in str(error)


def broken(error: BaseException) -> bool:
    raise LookupError("mistake")


@pytest.mark.parametrize(
    ("retry_on", "fail_on", "error", "follows"),
    [
        pytest.param(None, (), ValueError("x"), "again", id="any error is tried again"),
        pytest.param(("builtins:OSError",), (), TimeoutError("x"), "again", id="an error of the class"),
        pytest.param(("builtins:OSError",), (), ValueError("x"), "skip", id="another error goes to then at once"),
        pytest.param((as_text(busy),), (), ValueError("busy"), "again", id="a predicate that says yes"),
        pytest.param((as_text(busy),), (), ValueError("x"), "skip", id="a predicate that says no"),
        pytest.param(None, ("builtins:TypeError",), TypeError("x"), "fail", id="an error that fails at once"),
        pytest.param(
            ("builtins:TypeError",), ("builtins:TypeError",), TypeError("x"), "fail", id="fail_on comes first"
        ),
        pytest.param((as_text(broken),), (), ValueError("x"), "mistake", id="a predicate that raises"),
    ],
)
def test_which_errors_are_tried_again(
    retry_on: tuple[str, ...] | None, fail_on: tuple[str, ...], error: Exception, follows: str
) -> None:
    made = decisions(ErrorPolicy(then="skip", retry_on=retry_on, fail_on=fail_on), Ends())
    if follows in ("fail", "mistake"):
        words = (
            "raised TypeError, called with" if follows == "fail" else "predicate broken of OnError raised LookupError"
        )
        with pytest.raises(FunctionFailedError, match=words):
            made.after(record(), error, None)
    else:
        found = made.after(record(), error, None)
        assert ("skip" if found is NextRecord.GO_ON else "again") == follows


Fails = dict[int, int]
"""By offset: how often the function fails on a record."""

FAILS: Fails = {}
TRIES: Counter[int] = Counter()
CALLED: dict[bytes | None, list[int]] = defaultdict(list)


def work(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    """Fails as `FAILS` says, and notes the order of its calls. By name, so that a test can set it."""
    offsets = records.arrow.column("offset").to_pylist()
    CALLED[key].append(offsets[0])
    if any(TRIES[offset] < FAILS.get(offset, 0) for offset in offsets):
        if len(offsets) == 1:
            TRIES[offsets[0]] += 1
        raise ValueError(offsets)
    return pa.RecordBatch.from_pydict({"key": pa.array([key] * len(offsets), pa.binary()), "offset": offsets})


async def work_async(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    await asyncio.sleep(0)
    return work(key, records)


def work_record(record: Row) -> dict[str, object]:
    CALLED[record.key].append(record.offset)
    if TRIES[record.offset] < FAILS.get(record.offset, 0):
        TRIES[record.offset] += 1
        raise ValueError(record.offset)
    return {"key": record.key, "offset": record.offset}


async def work_record_async(record: Row) -> dict[str, object]:
    await asyncio.sleep(0)
    return work_record(record)


def work_named(key: bytes | None, records: KeyRecords) -> list[dict[str, object]]:
    """It says which record fails."""
    rows = list[dict[str, object]]()
    for number, record in enumerate(records):
        try:
            rows.append(work_record(record))
        except ValueError as error:
            raise FailedRecord(number, rows) from error
    return rows


def told(fails: Fails) -> None:
    FAILS.clear()
    FAILS.update(fails)
    TRIES.clear()
    CALLED.clear()


def function(
    call: Callable[..., object],
    concurrency: int,
    policy: ErrorPolicy,
    *,
    timeout_ms: int | None = None,
) -> UserFunction:
    takes = "records" if call in (work_record, work_record_async) else "keys"
    return UserFunction(f"{call.__module__}:{call.__qualname__}", OUTPUT, takes, concurrency, timeout_ms, policy)


KEYS = st.lists(st.lists(st.sampled_from([b"a", b"b", b"c", b"d", None]), min_size=1, max_size=6), max_size=5)
HOW = pytest.mark.parametrize(
    ("call", "concurrency"),
    [
        pytest.param(work, 1, id="one key at a time"),
        pytest.param(work, 3, id="threads"),
        pytest.param(work_async, 1, id="coroutines one by one"),
        pytest.param(work_async, 3, id="coroutines"),
        pytest.param(work_record, 1, id="one record at a time"),
        pytest.param(work_record, 3, id="records in threads"),
        pytest.param(work_record_async, 3, id="records in coroutines"),
        pytest.param(work_named, 3, id="it names the record"),
    ],
)
SINGLY = (work_record, work_record_async, work_named)


def coming(keys: list[list[bytes | None]]) -> Iterator[RecordsRead]:
    first = 0
    for of_batch in keys:
        yield RecordsRead(batch(of_batch, first), first + len(of_batch))
        first += len(of_batch)


@HOW
@given(
    keys=KEYS,
    fails=st.dictionaries(st.integers(0, 29), st.integers(1, 4)),
    then=st.sampled_from(["skip", "dead_letter", "park"]),
    backoff_ms=st.sampled_from([0, 1, 50_000]),
    by_record=st.booleans(),
)
def test_each_record_is_made_skipped_sent_or_deferred_once_and_each_key_in_order(
    call: Any,
    concurrency: int,
    keys: list[list[bytes | None]],
    fails: Fails,
    then: Then,
    backoff_ms: int,
    by_record: bool,
) -> None:
    """A record that fails more often than there are attempts goes where `then` says; a long back-off defers its key."""
    told(fails)
    policy = ErrorPolicy(3, backoff_ms, 50_000, then, "dead" if then == "dead_letter" else None)
    ends, letters = TaskEnds(10_000, lambda: 1.0), Letters()
    ends.begin({TP: 0})
    batches = (read.records for read in ends.reading(TP, coming(keys)))
    of = function(call, concurrency, policy)
    out = run(of, batches, tables([ALL]), by_record=by_record, ending=ends, dead_letters=letters)
    made = points(out)

    every = dict(enumerate(key for of_batch in keys for key in of_batch))
    end = {offset: _end(ends, hash_record(key, offset)) for offset, key in every.items()}
    lost = {o for o in every if o < end[o] and fails.get(o, 0) >= policy.attempts}
    assert sorted(o for _, o in made) == [o for o in every if o < end[o] and o not in lost]
    for key in (b"a", b"b", b"c", b"d"):
        of_key = [o for o, k in every.items() if k == key]
        assert all(a < b for a, b in pairwise(o for k, o in made if k == key))
        stops = next((o for o in of_key if _stops(fails.get(o, 0), policy)), None)
        assert [o for o in of_key if o < end[o]] == [o for o in of_key if stops is None or o < stops]
    if then == "skip":
        assert (ends.skipped, letters.sent) == (len(lost), [])
    if then == "dead_letter":
        assert sorted(o for o, *_ in letters.sent) == sorted(lost)
        assert ends.dead_lettered == len(lost)
    assert all(TRIES[o] <= policy.attempts for o in every)


def _end(ends: TaskEnds, key_hash: int) -> float:
    return next((end for hashes, end in ends.ends.get(TP, ()) if key_hash in hashes), float("inf"))


def _stops(times: int, policy: ErrorPolicy) -> bool:
    """Whether a record that fails so often ends its key."""
    deferred = times > 0 and policy.backoff_ms >= 10_000
    return deferred or (policy.then == "park" and times >= policy.attempts)


@HOW
def test_a_key_that_waits_for_its_next_attempt_holds_up_no_other(call: Any, concurrency: int) -> None:
    told({0: 2})
    policy = ErrorPolicy(3, 100, 100)
    made = points(run(function(call, concurrency, policy), iter([batch([b"a", b"b", b"a", b"c"])]), tables([ALL])))
    assert sorted(made[:2]) == [(b"b", 1), (b"c", 3)]
    assert made[2:] == [(b"a", 0), (b"a", 2)]
    together = [] if call in SINGLY else [0]
    assert CALLED[b"a"] == [*together, 0, 0, 0, 2], "all at once, alone three times, and then the rest"


@HOW
def test_a_key_that_waits_when_the_time_is_over_is_deferred(call: Any, concurrency: int) -> None:
    """Its attempt would have fitted when it failed; then another key took longer."""
    told({0: 1})
    ends = TaskEnds(10_000, lambda: 10_000.0 if TRIES[0] and b"b" in CALLED else 1.0)
    ends.begin({TP: 0})
    batches = (read.records for read in ends.reading(TP, coming([[b"a"], [b"b"], [b"a"]])))
    made = points(run(function(call, concurrency, ErrorPolicy(3, 2_000)), batches, tables([ALL]), ending=ends))
    assert [offset for key, offset in made if key == b"a"] == []
    assert _end(ends, hash_record(b"a", 0)) == 0
    assert CALLED[b"a"] == [0]


@HOW
def test_a_task_with_nothing_else_to_do_waits_for_attempts_a_second_in_all(call: Any, concurrency: int) -> None:
    """Else the records that come meanwhile would wait with the failing key."""
    told({0: 3, 1: 3})
    ends = TaskEnds(60_000, lambda: 1.0)
    ends.begin({TP: 0})
    batches = (read.records for read in ends.reading(TP, coming([[b"a", b"b", b"c"]])))
    policy = ErrorPolicy(9, 400, 30_000)
    assert points(run(function(call, concurrency, policy), batches, tables([ALL]), ending=ends)) == [(b"c", 2)]
    assert {_end(ends, hash_record(key, n)) for n, key in enumerate((b"a", b"b"))} == {0, 1}
    assert {r.offset for r in ends.failures.failing} == {0, 1}


@pytest.mark.parametrize(("ending", "waits"), [(Ends(), [True, True, False]), (None, [True, True, True])])
def test_a_task_that_may_not_end_early_waits_for_all_attempts(ending: Ends | None, waits: list[bool]) -> None:
    made = decisions(ErrorPolicy(), ending)
    assert [made.waits(seconds) for seconds in (0.5, 0.5, 0.1)] == waits


@HOW
@given(keys=KEYS, over=st.integers(1, 12))
def test_a_task_whose_time_is_over_ends_each_key_behind_what_it_has_made(
    call: Any, concurrency: int, keys: list[list[bytes | None]], over: int
) -> None:
    """A function of single records ends between two of them, and no record is made twice or left out below an end."""
    told({})
    ends = TaskEnds(10_000, lambda: 10_000.0 if sum(map(len, CALLED.values())) >= over else 1.0)
    ends.begin({TP: 0})
    batches = (read.records for read in ends.reading(TP, coming(keys)))
    made = points(run(function(call, concurrency, ErrorPolicy()), batches, tables([ALL]), ending=ends))
    every = dict(enumerate(key for of_batch in keys for key in of_batch))
    below = [offset for offset, key in every.items() if offset < _end(ends, hash_record(key, offset))]
    assert sorted(offset for _, offset in made) == below
    if call is work_record and concurrency == 1:
        assert len(made) <= over + 1, "one more may have begun"


def test_a_slow_key_does_not_outlast_the_time_of_the_task_by_more_than_a_record() -> None:
    told({})
    ends = TaskEnds(10_000, lambda: 10_000.0 if len(CALLED[b"a"]) >= 3 else 1.0)
    ends.begin({TP: 0})
    batches = (read.records for read in ends.reading(TP, coming([[b"a"] * 1_000])))
    made = points(run(function(work_record, 1, ErrorPolicy()), batches, tables([ALL]), ending=ends))
    assert [offset for _, offset in made] == [0, 1, 2]
    assert _end(ends, hash_record(b"a", 0)) == 3


def test_of_records_that_fail_no_other_record_is_called_again() -> None:
    told(dict.fromkeys(range(0, 1_000, 100), 1))
    keys: list[list[bytes | None]] = [[b"%d" % (number % 7) for number in range(1_000)]]
    run_of = run(function(work_record, 4, ErrorPolicy(3, 1, 1)), iter(b.records for b in coming(keys)), tables([ALL]))
    assert sorted(offset for _, offset in points(run_of)) == [*range(1_000)]
    assert sum(map(len, CALLED.values())) == 1_010, "one call for each record, and one more for each that failed"


async def hangs_on_b(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    if key == b"b":
        await asyncio.sleep(1_000)
    return work(key, records)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_call_that_takes_too_long_is_cancelled_and_has_failed(concurrency: int) -> None:
    told({})
    letters = Letters()
    policy = ErrorPolicy(2, 1, 1, then="dead_letter", topic="dead")
    of = function(hangs_on_b, concurrency, policy, timeout_ms=50)
    made = points(run(of, iter([batch([b"a", b"b", b"b"])]), tables([ALL]), dead_letters=letters))
    assert made == [(b"a", 0)]
    assert letters.sent == [(offset, "TimeoutError", "no result within 50 ms", 2) for offset in (1, 2)]


def misfit(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"key": [key]}) if key == b"b" else work(key, records)


def test_output_that_does_not_fit_its_schema_is_a_failure_of_the_record() -> None:
    told({})
    ends = Ends()
    of = function(misfit, 1, ErrorPolicy(1, then="skip"))
    assert points(run(of, iter([batch([b"a", b"b"])]), tables([ALL]), ending=ends)) == [(b"a", 0)]
    assert ends.skipped == 1
