"""Each fault is found, named by offset and batch, and nothing else is: columns of a log and of a sink, no servers."""

from collections.abc import Sequence

import numpy as np
import pytest

from audits import Row, log_of, sink_of
from coordinator.progress.segments import Progress, Segment
from coordinator.tools.audit.columns import NO_ROWS, NumberColumn
from coordinator.tools.audit.comparison import Expectation, compare
from coordinator.tools.audit.report import Fault, PartitionAudit
from coordinator.tools.fields import Inclusive
from coordinator.values.key_hash import hash_key
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

TP = TopicPartition("orders", 0)
KEYS = "abab-cab"
GOOD: list[Row] = [(0, 0, 0), (0, 1, 1), (0, 0, 2), (0, 2, 4), (1, 0, 3), (1, 1, 5), (1, 2, 6), (2, 0, 7)]


def none(tp: TopicPartition) -> NumberColumn:
    return np.zeros(0, np.int64)


def wanted(position: int = 8, **changes: object) -> Expectation:
    return Expectation(TP, 0, position, Progress((Segment(WHOLE, position),)), **changes)  # type: ignore[arg-type]


def of(rows: Sequence[Row], keys: str = KEYS, without: Sequence[int] = (), dead: Sequence[int] = ()) -> PartitionAudit:
    rows = sorted(rows, key=lambda row: row[:2])
    letters = np.array(dead, np.int64)
    return compare(wanted(len(keys)), log_of(keys, without=without), sink_of(rows), lambda tp: letters)


def test_a_good_sink_has_no_faults() -> None:
    found = of(GOOD)
    assert found.good
    none_of = "lost", "repeated", "out_of_order", "dead_lettered", "waiting", "parked", "deferred", "ahead", "gone"
    assert [getattr(found, count) for count in none_of] == [0] * len(none_of)
    assert (found.start, found.stable, found.until, found.records, found.rows, found.unordered) == (0, 8, 8, 8, 8, "")


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        pytest.param(
            [r for r in GOOD if r[2] != 2],
            Fault(
                "lost",
                Inclusive(2, 2),
                ("0", "1"),
                "of its key, the record before it, 0, is in batch 0, the record after it, 6, is in batch 1",
            ),
            id="a lost record, between the batches of its key",
        ),
        pytest.param(
            [r for r in GOOD if r[2] not in (4, 5)],
            Fault("lost", Inclusive(4, 5), (), "it has no key"),
            id="neighbours are one fault, and count as two",
        ),
        pytest.param(
            [r for r in GOOD if r[2] != 5],
            Fault("lost", Inclusive(5, 5), (), "the sink has no record of its key"),
            id="the only record of a key",
        ),
        pytest.param(
            [r for r in GOOD if r[2] > 1],
            Fault("lost", Inclusive(0, 1), ("0",), "of its key, the record after it, 2, is in batch 0"),
            id="the first records of the log",
        ),
        pytest.param(
            [*GOOD, (2, 0, 3)],
            Fault("repeated", Inclusive(3, 3), ("1", "2"), "2 rows"),
            id="a repeat in another batch",
        ),
        pytest.param(
            [*GOOD, (1, 0, 3)],
            Fault("repeated", Inclusive(3, 3), ("1",), "2 rows"),
            id="a repeat in the same batch",
        ),
        pytest.param(
            [(2, 0, 2) if r[2] == 2 else r for r in GOOD],
            Fault("out of order", Inclusive(2, 2), ("2",), "after 6 of its key, in batch 1"),
            id="a record in a later batch",
        ),
        pytest.param(
            [(2, 0, 5) if r[2] == 5 else r for r in GOOD],
            None,
            id="other keys may pass each other",
        ),
        pytest.param(
            [(0, 3, 2) if r[2] == 2 else r for r in GOOD],
            Fault("out of order", Inclusive(2, 2), ("0",), "another task of the batch has records of its key"),
            id="a key in two tasks of a batch",
        ),
    ],
)
def test_a_planted_fault_is_named(rows: list[Row], fault: Fault | None) -> None:
    found = of(rows)
    assert found.faults == ((fault,) if fault else ())
    assert found.good is (fault is None)
    assert found.lost + found.repeated + found.out_of_order == (
        0 if fault is None else 2 if "-" in str(fault.offsets) else 1
    )


def test_a_swap_within_a_file_is_named() -> None:
    rows = [(0, 0, 2), (0, 0, 0), *(r for r in sorted(GOOD) if r[2] not in (0, 2))]
    assert of(rows).faults == (Fault("out of order", Inclusive(0, 0), ("0",), "after 2 of its key, in batch 0"),)


def test_an_empty_sink_has_lost_everything() -> None:
    found = compare(wanted(), log_of(KEYS), NO_ROWS, none)  # counted by record, named by range
    assert (found.lost, found.records) == (8, 8)
    assert (found.faults, found.begin) == (
        (Fault("lost", Inclusive(0, 7), (), "the sink has no record of its key"),),
        None,
    )


@pytest.mark.parametrize(
    ("lost", "begin"),
    [
        pytest.param({0, 1}, 2, id="the first records"),
        pytest.param({0, 1, 5}, None, id="and another one"),
        pytest.param({1}, None, id="not the first"),
        pytest.param(set(), None, id="nothing is lost"),
    ],
)
def test_the_sink_may_begin_after_the_first_records(lost: set[int], begin: int | None) -> None:
    assert of([row for row in GOOD if row[2] not in lost]).begin == begin


def test_an_empty_log_expects_nothing() -> None:
    found = compare(wanted(), log_of(""), sink_of(GOOD), none)
    assert (found.good, found.records, found.gone) == (True, 0, 8)


def test_offsets_that_are_no_records_are_neither_lost_nor_a_fault() -> None:
    """Compacted away, a marker, or aborted: the sink may have the row or not."""
    rows = [r for r in GOOD if r[2] != 2]
    found = of(rows, without=(2, 3))
    assert (found.good, found.records, found.rows, found.gone) == (True, 6, 7, 1)


def test_a_repeat_of_an_offset_that_kafka_no_longer_has_is_a_fault() -> None:
    found = of([*GOOD, (2, 0, 3)], without=(3,))
    assert found.faults == (Fault("repeated", Inclusive(3, 3), ("1", "2"), "2 rows"),)


def test_dead_letters_are_not_lost() -> None:
    found = of([r for r in GOOD if r[2] not in (2, 5)], dead=(5, 7))
    assert (found.lost, found.dead_lettered, [str(f.offsets) for f in found.faults]) == (1, 1, ["2"])


def test_dead_letters_are_looked_up_only_if_something_is_missing() -> None:
    def never(tp: TopicPartition) -> NumberColumn:
        raise AssertionError("asked for dead letters")

    assert compare(wanted(), log_of(KEYS), sink_of(GOOD), never).good


def test_gaps_above_the_stable_offset_are_no_losses_and_done_records_there_are_expected() -> None:
    a, b = hash_key(b"a"), hash_key(b"b")
    low, high = sorted([a, b])
    cut = (low + high) // 2 + 1
    ahead = {True: 8, False: 3}
    segments = (
        Segment(HashRange(0, cut - 1), ahead[low == a]),
        Segment(HashRange(cut, WHOLE.hi), ahead[high == a]),
    )
    keys = "ababaaab"
    expectation = Expectation(TP, 0, 8, Progress(segments), parked=(HashRange(b, b),), deferred=(HashRange(a, a),))
    rows = [(0, 0, o) for o in (0, 1, 2, 4, 6, 7)]
    found = compare(expectation, log_of(keys), sink_of(rows), none)
    assert (found.stable, found.records, found.lost, str(found.faults[0].offsets)) == (3, 6, 1, "5")
    assert (found.waiting, found.parked, found.deferred, found.ahead) == (2, 2, 0, 1)


def test_rows_outside_the_audited_offsets_are_not_judged() -> None:
    expectation = Expectation(TP, 2, 6, Progress((Segment(WHOLE, 6),)))
    log = log_of(KEYS[2:6], first=2)
    found = compare(expectation, log, sink_of(sorted([*GOOD, (3, 0, 0), (3, 0, 7)])), none)
    assert (found.good, found.rows, found.ahead) == (True, 4, 3)


def test_without_batches_only_the_order_in_each_file_counts() -> None:
    rows = [(-1, 0, o) for o in (2, 0, *range(1, 2), *range(3, 8))]
    found = of(rows)
    assert found.unordered == "the sink names no batches"
    assert [str(f.offsets) for f in found.faults] == ["0"]


def test_a_group_without_order_has_no_disorder() -> None:
    rows = [(0, 0, o) for o in range(7, -1, -1)]
    found = compare(wanted(ordered=False), log_of(KEYS), sink_of(rows), none)
    assert (found.good, found.unordered) == (True, "the group has no order")


@pytest.mark.parametrize(("lost", "named"), [(1_000, 1_000), (1_001, 1_000), (999, 999)])
def test_the_first_thousand_faults_are_named_and_all_are_counted(lost: int, named: int) -> None:
    count = 2 * lost
    expectation = Expectation(TP, 0, count, Progress((Segment(WHOLE, count),)))
    found = compare(expectation, log_of("a" * count), sink_of([(0, 0, o) for o in range(0, count, 2)]), none)
    assert (found.lost, len(found.faults), str(found.faults[-1].offsets)) == (lost, named, str(2 * named - 1))


def test_parked_ranges_may_overlap() -> None:
    a, b = hash_key(b"a"), hash_key(b"b")
    ranges = (WHOLE, HashRange(min(a, b), max(a, b)), HashRange(a, a))
    expectation = Expectation(TP, 0, 4, Progress((Segment(WHOLE, 0),)), parked=ranges, deferred=ranges[2:])
    found = compare(expectation, log_of("abac"), NO_ROWS, none)
    assert (found.waiting, found.parked, found.deferred) == (4, 4, 2)


def test_individual_commits_are_expected() -> None:
    expectation = Expectation(TP, 0, 7, Progress((Segment(WHOLE, 3, (OffsetRange(5, 7),)),)))
    rows = [(0, 0, o) for o in (0, 1, 2, 5)]
    found = compare(expectation, log_of(KEYS[:7]), sink_of(rows), none)
    assert (found.records, found.waiting, [str(f.offsets) for f in found.faults]) == (5, 2, ["6"])
