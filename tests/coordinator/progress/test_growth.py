"""Partition growth: how far a new partition may be read, so that a key that moved there stays in order."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import pytest

from coordinator.errors import StateFormatError
from coordinator.progress.growth import (
    OPEN,
    SIGHTS,
    Ceilings,
    Growth,
    Levels,
    Segments,
    Sight,
    ceilings,
    levels,
    older_partitions,
    parsed,
    remembered,
)
from coordinator.values.hash_map import HashMap
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Topic, TopicPartition

T = TypeVar("T")
P = tuple(TopicPartition("orders", i) for i in range(8))


LOWER, UPPER = cuts(2)


GROWN = Growth("orders", "id-1", 2, 4, 1_000, 601_000)


OVER = Growth("orders", "id-1", 2, 4, 1_000, 601_000, (50, 60))


def sight(number: int, older: tuple[int, int], newer: int) -> Sight:
    return Sight(number, {P[2]: newer}, {P[0]: older[0], P[1]: older[1]})


FIRST, SECOND = sight(0, (10, 20), 5), sight(1, (30, 40), 15)


def whole(value: T) -> HashMap[T]:
    return HashMap.of(WHOLE, value)


def halves(lower: T, upper: T) -> HashMap[T]:
    return HashMap(((LOWER, lower), (UPPER, upper)))


@pytest.mark.parametrize(
    ("growth", "positions", "sights", "expected"),
    [
        pytest.param(GROWN, {}, (FIRST,), whole(OPEN), id="an unread range delays nothing"),
        pytest.param(
            GROWN, {P[0]: [(WHOLE, 10)], P[1]: [(WHOLE, 20)]}, (FIRST,), whole(1), id="every older partition is there"
        ),
        pytest.param(
            GROWN,
            {P[0]: [(LOWER, 30), (UPPER, 10)], P[1]: [(LOWER, 20), (UPPER, 40)]},
            (FIRST, SECOND),
            whole(1),
            id="the partition furthest behind decides, at every hash",
        ),
        pytest.param(
            GROWN,
            {P[0]: [(WHOLE, 99)], P[1]: [(WHOLE, 99)]},
            (FIRST, SECOND),
            whole(2),
            id="in the grace no hash is free",
        ),
        pytest.param(
            OVER,
            {P[0]: [(LOWER, 50), (UPPER, 49)], P[1]: [(WHOLE, 60)]},
            (FIRST, sight(1, (70, 80), 15)),
            halves(OPEN, 1),
            id="after it a hash is free once the recorded ends are passed",
        ),
        pytest.param(
            OVER, {P[0]: [(WHOLE, 7)], P[1]: [(WHOLE, 60)]}, (sight(0, (7, 80), 0),), whole(OPEN),
            id="a log that was cut below the recorded end has nothing more",
        ),
        pytest.param(GROWN, {P[0]: [(WHOLE, 10)], P[1]: [(WHOLE, 20)]}, (), whole(0), id="nothing was seen yet"),
        pytest.param(
            Growth("orders", "id-1", 4, 8, 1_000, 601_000),
            {P[3]: [(WHOLE, 99)]},
            (FIRST,),
            whole(0),
            id="a sight without this partition is none",
        ),
    ],
)  # fmt: skip
def test_levels(
    growth: Growth,
    positions: Mapping[TopicPartition, Segments],
    sights: tuple[Sight, ...],
    expected: Levels,
) -> None:
    assert levels(growth, positions, sights) == expected


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        pytest.param(whole(0), whole(0), id="no sight passed: nothing may be read"),
        pytest.param(whole(1), whole(5), id="the end seen in the first sight"),
        pytest.param(halves(2, OPEN), halves(15, None), id="free is no ceiling"),
    ],
)
def test_ceilings(level: Levels, expected: Ceilings) -> None:
    assert ceilings(level, P[2], (FIRST, SECOND)) == expected


def test_a_partition_that_a_sight_did_not_see_is_not_read_by_it() -> None:
    assert ceilings(whole(1), P[3], (FIRST,)) == whole(0)


@pytest.mark.parametrize(
    ("growth", "kept"),
    [
        pytest.param(Growth("t", "i", 2, 4, 0, 1), True, id="doubled"),
        pytest.param(Growth("t", "i", 1, 5, 0, 1), True, id="from one to any number"),
        pytest.param(Growth("t", "i", 2, 3, 0, 1), False, id="no multiple: keys move between older partitions too"),
        pytest.param(Growth("t", "i", 4, 6, 0, 1), False, id="half more is no multiple"),
        pytest.param(Growth("t", "i", 2, 4, 7, 7), False, id="without a grace the rule is off"),
        pytest.param(Growth("t", "i", 2, 4, 0, 1, late=True), False, id="seen late: it may have been 3 in between"),
        pytest.param(Growth("t", "i", 1, 4, 0, 1, late=True), False, id="seen late: likewise"),
        pytest.param(Growth("t", "i", 1, 2, 0, 1, late=True), True, id="seen late, but there is no number in between"),
    ],
)
def test_order_of_all_keys_is_promised_across_multiples_only(growth: Growth, kept: bool) -> None:
    assert growth.kept is kept
    assert ("is kept" in str(growth)) is kept


@pytest.mark.parametrize(
    ("growth", "gated", "promise"),
    [
        pytest.param(
            GROWN, True, "key order across it is kept if it did not grow twice within seconds", id="a multiple"
        ),
        pytest.param(
            replace(GROWN, late=True),
            True,
            "seen late, so some keys may be out of order unless it was one step, or steps to multiples",
            id="a multiple, seen late",
        ),
        pytest.param(
            replace(GROWN, old=1, new=2, late=True), True, "key order across it is kept", id="one step at most"
        ),
        pytest.param(
            Growth("t", "i", 2, 3, 0, 1),
            True,
            "not a multiple, so keys that moved between older partitions may be out of order",
            id="no multiple: only the new partition waits",
        ),
        pytest.param(
            Growth("t", "i", 2, 3, 7, 7),
            False,
            "partitionGrowthGrace is 0, so key order across it is not kept",
            id="no multiple and no grace",
        ),
    ],
)
def test_new_partitions_wait_at_any_growth_with_a_grace(growth: Growth, gated: bool, promise: str) -> None:
    assert (growth.gated, growth.promise) == (gated, promise)


@pytest.mark.parametrize(
    ("old", "new", "before"),
    [
        pytest.param(2, 4, [2], id="doubled: nothing was in between"),
        pytest.param(1, 4, [1, 2], id="it may have been doubled twice"),
        pytest.param(2, 12, [2, 4, 6], id="it may have been 4 or 6 in between"),
        pytest.param(1, 5, [1], id="2 in between would not have kept order"),
        pytest.param(2, 3, [2], id="no multiple: new partitions wait for the known ones"),
        pytest.param(4, 9, [4], id="no multiple: 8 in between is not looked for"),
    ],
)
def test_a_growth_has_a_step_for_each_count_that_may_have_come_last(old: int, new: int, before: list[int]) -> None:
    steps = Growth("orders", "id-1", old, new, 0, 1).steps
    assert [(s.old, s.new) for s in steps] == [(count, new) for count in before]


def test_the_ends_of_a_growth_are_of_every_partition_that_may_hold_others_back() -> None:
    growth = Growth.parse("orders 1 4", "id-1 0 1 5,7")
    assert [s.ends for s in growth.steps] == [(5,), (5, 7)]
    assert growth.holding == (P[0], P[1])
    assert not growth.passed({P[0]: 5, P[1]: 6})


def test_growths_are_text_in_redis() -> None:
    assert (OVER.field, OVER.value) == ("orders 2 4", "id-1 1000 601000 50,60")
    later = Growth("orders", "id-1", 4, 8, 2_000, 602_000)
    assert parsed({later.field: later.value, OVER.field: OVER.value}) == (OVER, later)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("orders 2", "id-1 1 2", id="a count is missing"),
        pytest.param("orders 4 2", "id-1 1 2", id="it became smaller"),
        pytest.param("orders 0 2", "id-1 1 2", id="it had no partition"),
        pytest.param("orders 2 4", "id-1 1", id="a time is missing"),
        pytest.param("orders 2 4", "id-1 1 2 50", id="an end is missing"),
        pytest.param("orders 2 4", "id-1 1 2 50,x", id="an end is no number"),
    ],
)
def test_a_damaged_growth_is_a_named_error(field: str, value: str) -> None:
    with pytest.raises(StateFormatError, match="growth"):
        parsed({field: value})


def test_a_growth_is_passed_when_every_older_partition_is_at_its_recorded_end() -> None:
    assert OVER.passed({P[0]: 50, P[1]: 60})
    assert not OVER.passed({P[0]: 50, P[1]: 59})
    assert OVER.passed({P[1]: 60}), "a partition without a position is not read by the group"
    assert not GROWN.passed({P[0]: 99, P[1]: 99}), "not before the ends were recorded"


def test_older_partitions_are_those_of_recorded_and_of_unrecorded_growths() -> None:
    topics = {"orders": Topic("orders", "id-1", tuple(range(4)))}
    assert older_partitions((), {}, topics) == set(), "a new group sees no growth"
    assert older_partitions((), {"orders": 4}, topics) == set()
    assert older_partitions((), {"orders": 2}, topics) == {P[0], P[1]}
    assert older_partitions((GROWN,), {"orders": 4}, topics) == {P[0], P[1]}
    assert older_partitions((Growth("bills", "id-2", 2, 4, 0, 1),), {}, topics) == set(), "another topic"


def test_sights_are_remembered_sparser_the_older_they_are() -> None:
    sights: tuple[Sight, ...] = ()
    for number in range(2_000):
        sights = remembered(sights, sight(number, (number, number), number))
    ages = [1_999 - s.number for s in sights]
    assert len(sights) == SIGHTS
    assert (ages[0], ages[-1]) == (1_999, 0)
    for lag in (1, 3, 10, 30, 100, 300, 900):
        assert min(age for age in ages if age >= lag) <= 3 * lag, f"{lag} looks behind there is a sight to pass: {ages}"


def test_a_log_that_was_cut_makes_earlier_sights_worthless() -> None:
    assert remembered((FIRST, SECOND), sight(2, (30, 12), 9)) == (sight(2, (30, 12), 9),)
