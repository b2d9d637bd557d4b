"""The cost of a task's slices: shared time of reading, exact time of the function, reports of progress."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from queue import SimpleQueue

import pyarrow as pa
import pytest

from arrow_records import ALL, batch
from coordinator.plan.cost.telemetry import MOST_AT, MOST_KEYS, KeyAt, KeyCost, SliceCost
from coordinator.progress.slices import Slice
from coordinator.values.key_hash import cuts, hash_record
from coordinator.values.ranges import HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.function.attempts import DoneRecords
from spark_coop_source.function.slice_batches import SliceBatch, by_key, by_slice, each_record, tables
from spark_coop_source.telemetry import meter as cost_meter
from spark_coop_source.telemetry.meter import SliceMeter

LOADS_PANDAS = """
import sys
import numpy as np
import pyarrow as pa
from coordinator.values.key_hash import cuts
from coordinator.progress.slices import Slice
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.telemetry.meter import SliceMeter
from spark_coop_source.decode.byte_column import ByteColumn
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.header_column import HEADERS
from spark_coop_source.function.slice_batches import tables
from spark_coop_source.arrow_output.record_batch import to_arrow
tp, numbers = TopicPartition("t", 0), np.arange(5_000)
keys = ByteColumn.of([b"%d" % i for i in range(5_000)])
chunk = Chunk(keys, keys, numbers, numbers, numbers.astype(np.int32), pa.nulls(5_000, HEADERS))
batch = to_arrow(tp, chunk, None, ("key", "offset"))
halves = tables(Slice(tp, hashes, OffsetRange(0, 5_000)) for hashes in cuts(2))
list(SliceMeter(halves, lambda cost: None, with_function=False).reading(tp, iter([batch])))
print("pandas" in sys.modules)
"""
HALVES = [Slice(TopicPartition("orders", 0), hashes, OffsetRange(0, 1_000)) for hashes in cuts(2)]
QUIET = Slice(TopicPartition("orders", 1), ALL.hashes, OffsetRange(0, 10))


class Clock:
    """Seconds, as a test moves them."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(cost_meter, "perf_counter", made)
    return made


def slowly(clock: Clock, *batches: pa.RecordBatch, seconds: float) -> Iterator[pa.RecordBatch]:
    for each in batches:
        clock.now += seconds
        yield each


def meter(reports: list[SliceCost], slices: list[Slice], *, with_function: bool = False) -> SliceMeter:
    return SliceMeter(tables(slices), reports.append, with_function=with_function)


def done(piece: SliceBatch, ms: float) -> DoneRecords:
    return DoneRecords(piece, None, ms)


def test_a_slice_is_reported_when_it_begins_and_when_it_has_been_read(clock: Clock) -> None:
    reports: list[SliceCost] = []
    records = batch([b"a"] * 10, value=b"x" * 100)
    reading = meter(reports, [ALL]).reading(ALL.topic_partition, slowly(clock, records, seconds=0.5))
    assert list(reading) == [records]
    begun = SliceCost.nothing(ALL)
    assert reports[0] == begun
    size = records.column("key").nbytes + records.column("value").nbytes
    assert reports[1:] == [replace(begun, rows=10, bytes=size, read_ms=500.0, finished=True)]


def test_a_slice_without_records_is_finished_too(clock: Clock) -> None:
    reports: list[SliceCost] = []
    assert list(meter(reports, [QUIET]).reading(QUIET.topic_partition, iter(()))) == []
    assert reports == [SliceCost.nothing(QUIET), replace(SliceCost.nothing(QUIET), finished=True)]


def test_partitions_begin_one_after_another_so_that_a_hang_has_an_address(clock: Clock) -> None:
    reports: list[SliceCost] = []
    measured = meter(reports, [ALL, QUIET])
    reading = measured.reading(ALL.topic_partition, slowly(clock, batch([b"a"]), batch([b"a"], 1), seconds=0.1))
    next(reading)
    assert [cost.slice for cost in reports] == [ALL]


@pytest.mark.parametrize(
    ("cut", "singly", "expected"),
    [
        pytest.param(each_record, True, [(b"a", 7), (b"b", 8), (b"a", 9)], id="record by record"),
        pytest.param(by_slice, True, [None], id="a function of batches has two keys: it may be either"),
    ],
)
def test_a_trial_reports_the_key_before_the_function_may_hang_on_it(
    clock: Clock, cut: Callable[..., Iterator[SliceBatch]], singly: bool, expected: list[tuple[bytes, int] | None]
) -> None:
    reports: list[SliceCost] = []
    measured = SliceMeter(tables([ALL]), reports.append, with_function=True, singly=singly)
    at = []
    for each in measured.reading(ALL.topic_partition, iter([batch([b"a", b"b", b"a"], 7)])):
        for piece in cut(each, tables([ALL])[ALL.topic_partition]):
            measured.begins(piece)
            at.append(reports[-1].at)
            measured.returned(piece)
            measured.worked(done(piece, 1.0))
    assert at == [(KeyAt(hash_record(*e), e[1], e[1] + 1),) if e else () for e in expected]


def test_a_trial_reports_the_only_key_of_a_batch_too(clock: Clock) -> None:
    reports: list[SliceCost] = []
    measured = SliceMeter(tables([ALL]), reports.append, with_function=True, singly=True)
    for each in measured.reading(ALL.topic_partition, iter([batch([b"a"] * 3, 7)])):
        measured.begins(next(by_slice(each, tables([ALL])[ALL.topic_partition])))
    key_hash = hash_record(b"a", 7)
    assert reports[-1].under_way == (Slice(ALL.topic_partition, HashRange(key_hash, key_hash), OffsetRange(7, 10)),)


def test_calls_under_way_are_reported_though_no_call_returns(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_coop_source.telemetry.meter.ALIVE_S", 0.01)
    reports = SimpleQueue[SliceCost]()
    measured = SliceMeter(tables([ALL]), reports.put, with_function=True)
    (read,) = measured.reading(ALL.topic_partition, iter([batch([b"a", b"b", b"a"], 7)]))
    first, other = by_key(read, tables([ALL])[ALL.topic_partition])
    hashes = {hash_record(b"a", 7): (7, 10), hash_record(b"b", 8): (8, 9)}
    calls = [KeyAt(key, *hashes[key]) for key in sorted(hashes)]

    def next_calls(wanted: list[KeyAt]) -> None:
        while reports.get(timeout=20).at != tuple(wanted):
            pass

    with measured.alive():
        measured.begins(first)
        measured.begins(other)
        next_calls(calls)
        measured.returned(first)
        next_calls([at for at in calls if at.key_hash == other.key_hash])
        measured.returned(other)
    assert not any(thread.name == "coop-kafka-alive" for thread in threading.enumerate())


def test_very_many_calls_are_not_named(clock: Clock) -> None:
    reports: list[SliceCost] = []
    measured = SliceMeter(tables([ALL]), reports.append, with_function=True)
    keys: list[bytes | None] = [b"%d" % i for i in range(MOST_AT + 1)]
    (read,) = measured.reading(ALL.topic_partition, iter([batch(keys)]))
    pieces = [*by_key(read, tables([ALL])[ALL.topic_partition])]
    for piece in pieces[:-1]:
        measured.begins(piece)
    assert len(measured._at(ALL)) == MOST_AT
    measured.begins(pieces[-1])
    assert measured._at(ALL) == ()


def test_with_a_function_reading_is_shared_out_by_rows(clock: Clock) -> None:
    reports: list[SliceCost] = []
    keys: list[bytes | None] = [b"%d" % i for i in range(1_000)]
    measured = meter(reports, HALVES, with_function=True)
    list(measured.reading(HALVES[0].topic_partition, slowly(clock, batch(keys), seconds=1)))
    for s, cost in zip(HALVES, reports[2:], strict=True):
        rows = sum(hash_record(key, 0) in s.hashes for key in keys)
        assert cost.rows == rows
        assert cost.read_ms == pytest.approx(rows), "a second for a thousand rows"
        assert not cost.finished, "the function has seen none of them"


@pytest.mark.parametrize(
    ("count", "within"), [pytest.param(2_000, 0, id="a small batch"), pytest.param(20_000, 0.1, id="a large batch")]
)
def test_without_a_function_rows_are_guessed_from_a_sample(clock: Clock, count: int, within: float) -> None:
    reports: list[SliceCost] = []
    keys: list[bytes | None] = [b"%d" % i for i in range(count)]
    slices = [s._replace(offsets=OffsetRange(0, count)) for s in HALVES]
    list(meter(reports, slices).reading(slices[0].topic_partition, slowly(clock, batch(keys), seconds=1)))
    finished = {cost.hashes: cost for cost in reports if cost.finished}
    for s in slices:
        rows = sum(hash_record(key, 0) in s.hashes for key in keys)
        assert finished[s.hashes].rows == pytest.approx(rows, rel=within)
        assert finished[s.hashes].read_ms == pytest.approx(1_000 * rows / count, rel=within + 1e-9)


@pytest.mark.parametrize(("cut", "keys_reported"), [(by_slice, 0), (by_key, 2)])
def test_a_slice_is_finished_when_the_function_is_through_with_it(
    clock: Clock, cut: Callable[..., Iterator[SliceBatch]], keys_reported: int
) -> None:
    reports: list[SliceCost] = []
    keys = [b"%d" % i for i in range(20)]
    some = [[key for key in keys if hash_record(key, 0) in s.hashes][:2] for s in HALVES]
    records = batch([*some[0], *some[1]])
    measured = meter(reports, HALVES, with_function=True)
    reading = measured.reading(HALVES[0].topic_partition, slowly(clock, records, seconds=1))
    pieces = [piece for each in reading for piece in cut(each, tables(HALVES)[HALVES[0].topic_partition])]
    assert not any(cost.finished for cost in reports), "all is read, nothing is worked on"
    for number, piece in enumerate(sorted(pieces, key=lambda piece: piece.of)):
        measured.worked(done(piece, 10.0 * (number + 1)))
    low, high = (cost for cost in reports if cost.finished)
    assert (low.slice, high.slice) == tuple(HALVES)
    assert (low.rows, low.read_ms, high.rows, high.read_ms) == (2, 500.0, 2, 500.0)
    assert (len(low.keys), len(high.keys)) == (keys_reported, keys_reported)
    assert low.function_ms < high.function_ms
    assert sum(k.ms for k in low.keys) == pytest.approx(low.function_ms if keys_reported else 0)


def test_the_costliest_keys_are_named(clock: Clock) -> None:
    reports: list[SliceCost] = []
    keys = [b"%d" % i for i in range(5_000)]
    measured = meter(reports, [ALL], with_function=True)
    reading = measured.reading(ALL.topic_partition, iter([batch(keys)]))
    pieces = {piece.key: piece for each in reading for piece in by_key(each, tables([ALL])[ALL.topic_partition])}
    for number, key in enumerate(keys):
        measured.worked(done(pieces[key], 9_000.0 if number == 7 else number / 1_000))
    assert reports[-1].keys[0] == KeyCost(hash_record(b"7", 0), 9_000.0, 1)
    assert [k.key_hash for k in reports[-1].keys[1:]] == [
        hash_record(b"%d" % (4_999 - i), 0) for i in range(MOST_KEYS - 1)
    ]


def test_a_sign_of_life_is_reported_each_second_and_not_more_often(clock: Clock) -> None:
    reports: list[SliceCost] = []
    batches = [batch([b"a"], first) for first in range(10)]
    list(meter(reports, [ALL]).reading(ALL.topic_partition, slowly(clock, *batches, seconds=0.4)))
    assert [cost.rows for cost in reports] == [0, 3, 6, 9, 10]
    assert [cost.finished for cost in reports] == [False, False, False, False, True]


def test_counting_the_rows_of_several_slices_does_not_load_pandas() -> None:
    printed = subprocess.run([sys.executable, "-c", LOADS_PANDAS], capture_output=True, text=True, check=True).stdout
    assert printed == "False\n"


def test_a_task_reports_once_and_for_one_slice_that_it_passes_on_records(clock: Clock) -> None:
    reports: list[SliceCost] = []
    measured = meter(reports, HALVES)
    measured.hands_on()
    assert reports == [], "it has none"
    keys: list[bytes | None] = [b"%d" % i for i in range(1_000)]
    next(measured.reading(HALVES[0].topic_partition, slowly(clock, batch(keys), seconds=0.1)))
    for _ in range(3):
        measured.hands_on()
    assert [cost.handed_ms for cost in reports] == [None, None, pytest.approx(100.0)]


def test_a_function_in_the_read_omits_the_time_at_which_records_are_passed_on(clock: Clock) -> None:
    reports: list[SliceCost] = []
    measured = meter(reports, [ALL], with_function=True)
    next(measured.reading(ALL.topic_partition, slowly(clock, batch([b"a"]), seconds=0.1)))
    measured.hands_on()
    assert [cost.handed_ms for cost in reports] == [None]


def test_records_that_the_function_did_not_get_count_neither_as_rows_nor_as_bytes(clock: Clock) -> None:
    """The task ended early. The planner divides the cost by the records that were worked on."""
    reports: list[SliceCost] = []
    slices = [ALL._replace(offsets=OffsetRange(start, start + 10)) for start in (0, 10)]
    measured = meter(reports, slices, with_function=True)
    table = tables(slices)[ALL.topic_partition]
    for each in measured.reading(ALL.topic_partition, slowly(clock, batch([b"a"] * 20, value=b"x"), seconds=1)):
        pieces = [piece for one in (each.slice(0, 5), each.slice(5)) for piece in by_key(one, table)]
        measured.worked(done(pieces[0], 1.0))
    measured.ended()
    ended = {cost.offsets.start: cost for cost in reports if cost.finished}
    assert [(ended[start].rows, ended[start].bytes > 0) for start in (0, 10)] == [(5, True), (0, False)]
