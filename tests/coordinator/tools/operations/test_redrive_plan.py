"""The progress of a redrive covers exactly the redriven records; the order of keys is counted exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.errors import ConflictingOptionsError, StateFormatError
from coordinator.tools.operations.redrive_plan import Letter, Order, RedriveProgress, after, check_recordable
from coordinator.values.subscription import TopicPartition

DEAD, ORDERS = TopicPartition("orders-dead", 0), TopicPartition("orders", 0)

OFFSETS = st.sets(st.integers(0, 60), max_size=20).map(sorted)


def test_nothing_left__the_position_is_the_end() -> None:
    assert after([3, 5], {3, 5}, 9) == RedriveProgress(9)


def test_no_dead_letters__the_position_is_the_end() -> None:
    assert after([], set(), 9) == RedriveProgress(9)


def test_one_key_of_several__ranges_above_the_position() -> None:
    #      a  b  a  c  a  a  b
    assert after([0, 1, 4, 5, 6, 8, 9], {0, 4, 6, 8}, 10) == RedriveProgress(1, ((4, 4), (6, 8)))


@given(OFFSETS, st.data())
def test_the_progress_has_exactly_the_redriven_ones(letters: list[int], data: st.DataObject) -> None:
    done = data.draw(st.sets(st.sampled_from(letters))) if letters else set()
    progress = after(letters, done, 61)
    assert {offset for offset in letters if progress.has(offset)} == done
    assert RedriveProgress.parse(progress.position, progress.text) == progress
    assert progress.position == min(set(letters) - done, default=61)


@given(OFFSETS, st.data())
def test_a_second_redrive_begins_with_the_progress_of_the_first(letters: list[int], data: st.DataObject) -> None:
    first = data.draw(st.sets(st.sampled_from(letters))) if letters else set()
    second = data.draw(st.sets(st.sampled_from(letters))) if letters else set()
    progress = after(letters, first, 61)
    unread = [offset for offset in letters if offset >= progress.position]  # the second one reads no others
    known = {offset for offset in unread if progress.has(offset)}
    assert after(unread, known | (second & set(unread)), 61) == after(letters, first | (second & set(unread)), 61)


@pytest.mark.parametrize("text", ["x", "1-", "1-2,3-4", "-1-2", "1-2 ", "01-2"])
def test_metadata_of_another_program_is_named(text: str) -> None:
    with pytest.raises(StateFormatError, match="not ranges of offsets"):
        RedriveProgress.parse(0, text)


def test_more_gaps_than_kafka_can_record_are_refused_with_a_way_out() -> None:
    letters = [*range(10_000, 12_000)]
    progress = after(letters, set(letters[1::2]), 12_000)
    with pytest.raises(ConflictingOptionsError, match="1000 gaps") as error:
        check_recordable(progress)
    assert "without --key" in error.value.remedy
    check_recordable(after(letters, set(letters), 12_000))


def letter(source_offset: int, key: bytes | None, tp: TopicPartition = ORDERS) -> Letter:
    return Letter(DEAD, source_offset, tp, source_offset, key)


def seen(letters: list[Letter], log: list[bytes | None]) -> Order:
    """The order of a redrive where the partition has records with these keys."""
    order = Order(letters)
    for offset, key in enumerate(log):
        if offset >= order.starts.get(ORDERS, len(log)):
            order.see(ORDERS, offset, key)
    return order


def test_a_key_without_a_later_record_stays_in_order() -> None:
    order = seen([letter(2, b"a"), letter(4, b"a")], [b"b", b"a", b"a", b"b", b"a", b"b"])
    assert (order.keys[ORDERS, b"a"].late, order.keys[ORDERS, b"a"].later) == (0, 0)


def test_only_the_dead_letters_before_a_later_record_are_late() -> None:
    #                       dead                    dead  later       dead
    order = seen([letter(0, b"a"), letter(2, b"a"), letter(5, b"a")], [b"a", b"b", b"a", b"a", b"a", b"a"])
    assert (order.keys[ORDERS, b"a"].late, order.keys[ORDERS, b"a"].later) == (2, 2)


def test_records_without_a_key_have_no_order() -> None:
    order = seen([letter(0, None)], [None, None, None])
    assert (order.keys, order.starts) == ({}, {})


def test_equal_keys_of_two_partitions_are_two_keys() -> None:
    other = TopicPartition("orders", 1)
    order = Order([letter(7, b"a"), letter(3, b"a", other)])
    order.see(other, 4, b"a")
    assert order.starts == {ORDERS: 8, other: 4}
    assert (order.keys[ORDERS, b"a"].late, order.keys[other, b"a"].late) == (0, 1)


@given(st.lists(st.sampled_from([b"a", b"b", None]), max_size=20), st.data())
def test_late_are_those_with_a_later_record_that_is_not_redriven(log: list[bytes | None], data: st.DataObject) -> None:
    dead = data.draw(st.sets(st.integers(0, len(log) - 1))) if log else set()
    order = seen([letter(offset, log[offset]) for offset in sorted(dead)], log)
    late = sum(
        any(log[later] == log[offset] and later not in dead for later in range(offset + 1, len(log)))
        for offset in dead
        if log[offset] is not None
    )
    assert sum(of_key.late for of_key in order.keys.values()) == late
