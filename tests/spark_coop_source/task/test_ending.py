"""Where a task ends: the points (offset, hash) before its ends are exactly those that it has handed over."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from coordinator.progress.ends import Ends
from coordinator.progress.failing import FailingRecord, Failures
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.task.ending import MOST_FAILING, TaskEnds
from spark_coop_source.task.reads import RecordsRead

TPS = tuple(TopicPartition("orders", number) for number in range(3))
SHARE_MS = 90.0


@dataclass
class Clock:
    """Stands still until something is worked on."""

    ms: float = 0.0

    def now(self) -> float:
        return self.ms


def read(first: int, until: int) -> RecordsRead:
    return RecordsRead(pa.record_batch({"offset": list(range(first, until))}), until)


def task(clock: Clock, starts: Sequence[int]) -> TaskEnds:
    ends = TaskEnds(SHARE_MS, clock.now)
    ends.begin(dict(zip(TPS, starts, strict=False)))
    return ends


def offsets(read: RecordsRead) -> list[int]:
    found: list[int] = read.records.column("offset").to_pylist()
    return found


def test_time_enough__all_is_read_and_nothing_ends_early() -> None:
    ends = task(Clock(), [10])
    assert [offsets(b) for b in ends.reading(TPS[0], iter([read(10, 12), read(12, 13)]))] == [[10, 11], [12]]
    assert ends.ends == {}


def test_time_over__it_ends_after_the_batch_that_was_handed_over() -> None:
    clock = Clock()
    ends = task(clock, [10])
    for _ in ends.reading(TPS[0], iter([read(10, 12), read(12, 20), read(20, 30)])):
        clock.ms += 60
    assert ends.ends == {TPS[0]: ((WHOLE, 20),)}


def test_a_task_defers_so_many_keys_that_its_frame_holds_them__then_it_ends() -> None:
    ends = task(Clock(), [10])
    next(ends.reading(TPS[0], iter([read(10, 12)])))
    for key_hash in range(MOST_FAILING):
        ends.defer(FailingRecord(TPS[0], key_hash, 11, 1, 0))
    before = ends.over
    ends.defer(FailingRecord(TPS[0], MOST_FAILING, 11, 1, 0))
    assert len(ends.failures.failing) == MOST_FAILING
    assert (before, ends.over) == (False, True)
    (early,) = ends.ends.values()
    assert early[0] == (HashRange(0, MOST_FAILING), 11), "the last key ends at its record too"


def test_a_task_that_may_not_end_by_the_clock_has_an_end_of_further_attempts() -> None:
    """Rule: replay-may-defer. Else a replay would last until all attempts are made."""
    clock = Clock()
    ends = TaskEnds(inf, clock.now, retries_ms=50.0)
    assert ends.left_ms == 50.0
    clock.ms = 60.0
    assert ends.left_ms == 0.0
    assert not ends.over


def test_a_batch_that_takes_all_of_the_time_is_read_all_the_same() -> None:
    clock = Clock(1_000)
    ends = task(clock, [10])
    assert len(list(ends.reading(TPS[0], iter([read(10, 12), read(12, 13)])))) == 1
    assert ends.ends == {TPS[0]: ((WHOLE, 12),)}


def test_a_slow_partition_takes_no_time_of_the_others() -> None:
    """Each of three partitions may use 30 ms; the second is slow."""
    clock, handed = Clock(), dict[TopicPartition, int]()
    ends = task(clock, [0, 0, 0])
    for tp, ms in zip(TPS, (0.5, 40, 0.5), strict=True):
        for batch in ends.reading(tp, (read(at, at + 1) for at in range(5))):
            clock.ms += ms
            handed[tp] = handed.get(tp, 0) + len(batch.records)
    assert handed == {TPS[0]: 5, TPS[1]: 2, TPS[2]: 5}
    assert ends.ends == {TPS[1]: ((WHOLE, 2),)}


def test_a_partition_without_time_ends_where_it_begins() -> None:
    """The first one may end at its planned end: the task has not looked for more."""
    clock = Clock()
    ends = task(clock, [0, 7])
    for _ in ends.reading(TPS[0], iter([read(0, 5)])):
        clock.ms += 100
    assert list(ends.reading(TPS[1], iter([read(7, 9)]))) == []
    assert ends.ends == {TPS[0]: ((WHOLE, 5),), TPS[1]: ((WHOLE, 7),)}


Key = tuple[int, int]  # hash, milliseconds of work


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40)), max_size=6), max_size=4),
    st.sets(st.integers(0, 9), max_size=3),
)
def test_between_two_keys__ends_are_those_of_the_keys_that_were_worked_on(
    batches: list[list[Key]], ahead: set[int]
) -> None:
    """Each batch has ten offsets, and each of its keys some of them."""
    clock = Clock()
    ends, worked = task(clock, [0]), set[tuple[int, int]]()
    reads = iter([read(10 * number, 10 * number + 10) for number in range(len(batches))])
    for number, _ in enumerate(ends.reading(TPS[0], reads)):
        for key_hash, ms in sorted(batches[number], key=lambda key: (key[0] not in ahead, key[0])):
            if not ends.before_key(TPS[0], key_hash, ahead=key_hash in ahead):
                break
            clock.ms += ms
            worked.add((number, key_hash))
    for number, keys in enumerate(batches):
        for key_hash, _ in keys:
            assert ((number, key_hash) in worked) == (10 * number < _end(ends.ends, key_hash))


def _end(ends: Ends, key_hash: int) -> float:
    return next((end for hashes, end in ends.get(TPS[0], ()) if key_hash in hashes), float("inf"))


def test_a_key_that_was_withdrawn__its_hash_ends_before_its_records() -> None:
    ends = task(Clock(), [0])
    for _ in ends.reading(TPS[0], iter([read(0, 10), read(10, 20)])):
        for key_hash in (100, 800):
            assert ends.before_key(TPS[0], key_hash, ahead=False)
    for offset in (17, 4):
        ends.withdraw(TPS[0], 800, offset)
    below, above = HashRange(0, 799), HashRange(801, WHOLE.hi)
    assert ends.ends == {TPS[0]: ((below, 20), (HashRange(800, 800), 4), (above, 20))}


def test_neighbours_that_were_withdrawn_end_together_where_their_batch_begins() -> None:
    """Else each key would become a lane of its own, and later batches would be slower."""
    ends = task(Clock(), [0])
    for number, _ in enumerate(ends.reading(TPS[0], iter([read(0, 10), read(10, 20)]))):
        for key_hash in (100, 300, 500, 700):
            assert ends.before_key(TPS[0], key_hash + number, ahead=False)
    for key_hash, offset in ((501, 17), (701, 12), (700, 3)):
        ends.withdraw(TPS[0], key_hash, offset, whole=True)
    below, middle, above = HashRange(0, 500), HashRange(501, 699), HashRange(701, WHOLE.hi)
    assert ends.ends == {TPS[0]: ((below, 20), (middle, 10), (HashRange(700, 700), 0), (above, 10))}


def test_two_keys_of_one_hash__it_ends_at_its_own_offset() -> None:
    ends = task(Clock(), [0])
    for _ in ends.reading(TPS[0], iter([read(0, 10)])):
        assert [ends.before_key(TPS[0], 100, ahead=False) for _ in range(2)] == [True, True]
    ends.withdraw(TPS[0], 100, 7, whole=True)
    assert ends.ends == {TPS[0]: ((HashRange(0, 99), 10), (HashRange(100, 100), 7), (HashRange(101, WHOLE.hi), 10))}


RECORDS = st.lists(st.integers(0, 9), min_size=1, max_size=12)  # the hash of each record of a batch


@given(st.lists(RECORDS, max_size=4), st.data())
def test_what_was_withdrawn_lies_behind_the_ends_and_all_else_before(
    batches: list[list[int]], data: st.DataObject
) -> None:
    """A hash is withdrawn from one of its records on: the first of a batch (`whole`), or another one."""
    ends, at, got = task(Clock(), [0]), 0, list[tuple[int, int, bool]]()
    for hashes, _ in zip(batches, ends.reading(TPS[0], _reads(batches)), strict=True):
        for key_hash in sorted({*hashes}):
            assert ends.before_key(TPS[0], key_hash, ahead=False)
        got += [(at + n, h, h not in hashes[:n]) for n, h in enumerate(hashes)]
        at += len(hashes)
    first = {h: data.draw(st.none() | st.sampled_from([(o, w) for o, k, w in got if k == h])) for _, h, _ in got}
    for key_hash, withdrawn in first.items():
        if withdrawn:
            ends.withdraw(TPS[0], key_hash, withdrawn[0], whole=withdrawn[1])
    for offset, key_hash, _ in got:
        left = first[key_hash]
        assert (offset < _end(ends.ends, key_hash)) == (left is None or offset < left[0])


def _reads(batches: list[list[int]]) -> Iterator[RecordsRead]:
    at = 0
    for hashes in batches:
        yield read(at, at + len(hashes))
        at += len(hashes)


def test_ends_cover_all_hashes_without_overlaps() -> None:
    clock = Clock()
    ends = task(clock, [0])
    for _ in ends.reading(TPS[0], iter([read(0, 10)])):
        for key_hash, ahead in ((700, True), (900, True), (100, False)):
            assert ends.before_key(TPS[0], key_hash, ahead=ahead)
        clock.ms = SHARE_MS
        assert not ends.before_key(TPS[0], 800, ahead=False)
    done, rest = HashRange(0, 799), HashRange(901, WHOLE.hi)
    assert ends.ends == {TPS[0]: ((done, 10), (HashRange(800, 899), 0), (HashRange(900, 900), 10), (rest, 0))}


def failing(offset: int, key_hash: int = 5, attempts: int = 1) -> FailingRecord:
    return FailingRecord(TPS[0], key_hash, offset, attempts, 100)


def test_a_key_that_is_deferred__its_hash_ends_at_the_record() -> None:
    ends = task(Clock(), [10])
    list(ends.reading(TPS[0], iter([read(10, 20)])))
    ends.defer(failing(12))
    below, above = HashRange(0, 4), HashRange(6, WHOLE.hi)
    assert ends.ends == {TPS[0]: ((below, 20), (HashRange(5, 5), 12), (above, 20))}
    assert ends.failures == Failures((failing(12),))


def test_attempts_of_earlier_batches_are_of_the_same_record() -> None:
    ends = TaskEnds(SHARE_MS, Clock().now, (failing(12, attempts=3),))
    assert ends.attempts(TPS[0], 5, 12) == 3
    assert ends.attempts(TPS[0], 5, 13) == ends.attempts(TPS[0], 6, 12) == ends.attempts(TPS[1], 5, 12) == 0


def test_a_task_without_room_for_another_failing_key__ends_there() -> None:
    ends = TaskEnds(SHARE_MS, Clock().now, (failing(11, 1),), {TPS[0]: 1})
    ends.begin({TPS[0]: 10})
    batches = ends.reading(TPS[0], iter([read(10, 20), read(20, 30)]))
    next(batches)
    for key_hash, offset in ((1, 11), (2, 12), (2, 12)):
        ends.defer(failing(offset, key_hash))
    over = [ends.over]
    ends.defer(failing(13, 3))
    assert [*over, ends.over] == [False, True], "a known failing key needs no room"
    assert [*batches] == []
    assert [r.key_hash for r in ends.failures.failing] == [1, 2]
    assert (HashRange(3, 3), 13) in ends.ends[TPS[0]], "it is not lost: the next batch gets it again"
