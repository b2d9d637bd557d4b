"""Spark's filters as bounds on the plan: each filter is applied exactly, or is left to Spark."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from coordinator.values.ranges import OFFSET_MAX
from spark_coop_source.driver.pushed_filters import NOTHING, Interval, Pushed, pushed

NOON = datetime(2026, 1, 1, 12, microsecond=1_999, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)
OFFSET, PARTITION, KEY, TIMESTAMP = ("offset",), ("partition",), ("key",), ("timestamp",)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        pytest.param([EqualTo(OFFSET, 5)], Pushed(offsets=Interval(5, 5)), id="one offset"),
        pytest.param([GreaterThan(OFFSET, 5)], Pushed(offsets=Interval(6, OFFSET_MAX)), id="after an offset"),
        pytest.param([GreaterThanOrEqual(OFFSET, 5)], Pushed(offsets=Interval(5, OFFSET_MAX)), id="from an offset"),
        pytest.param([LessThan(OFFSET, 5)], Pushed(offsets=Interval(0, 4)), id="before an offset"),
        pytest.param([LessThanOrEqual(OFFSET, 5)], Pushed(offsets=Interval(0, 5)), id="up to an offset"),
        pytest.param([LessThan(OFFSET, 9), GreaterThan(OFFSET, 5)], Pushed(offsets=Interval(6, 8)), id="between"),
        pytest.param([GreaterThan(OFFSET, -9)], NOTHING, id="after a negative offset"),
        pytest.param([EqualTo(PARTITION, 2)], Pushed(partitions=Interval(2, 2)), id="one partition"),
        pytest.param([In(PARTITION, (2, 4))], Pushed(among=frozenset([2, 4])), id="two partitions"),
        pytest.param(
            [In(PARTITION, (2, 4)), In(PARTITION, (4, 5))], Pushed(among=frozenset([4])), id="partitions of both lists"
        ),
        pytest.param([EqualTo(KEY, b"a")], Pushed(keys=frozenset([b"a"])), id="one key"),
        pytest.param([In(KEY, (b"a", bytearray(b"b")))], Pushed(keys=frozenset([b"a", b"b"])), id="two keys"),
        pytest.param([EqualTo(KEY, b"a"), In(KEY, (b"b",))], Pushed(keys=frozenset()), id="keys that exclude another"),
    ],
)
def test_a_filter_that_the_source_applies_exactly_is_not_left_to_spark(filters: list[Filter], expected: Pushed) -> None:
    assert pushed(filters) == (expected, ())


@pytest.mark.parametrize(
    "of", [GreaterThan(TIMESTAMP, NOON), GreaterThanOrEqual(TIMESTAMP, NOON), EqualTo(TIMESTAMP, NOON)]
)
def test_a_first_time_bounds_the_plan_and_is_compared_by_spark_too(of: Filter) -> None:
    earlier = GreaterThan(TIMESTAMP, datetime(2025, 1, 1, tzinfo=UTC))
    assert pushed([of, earlier]) == (Pushed(since_ms=NOON_MS), (of, earlier))


@pytest.mark.parametrize(
    "of",
    [
        LessThan(TIMESTAMP, NOON),
        GreaterThan(TIMESTAMP, NOON.replace(tzinfo=None)),
        EqualTo(KEY, "a"),
        EqualTo(KEY, None),
        In(KEY, (b"a", None)),
        EqualNullSafe(KEY, b"a"),
        GreaterThan(KEY, b"a"),
        Not(EqualTo(KEY, b"a")),
        IsNotNull(KEY),
        IsNull(KEY),
        EqualTo(("value",), b"a"),
        EqualTo(("topic",), "orders"),
        StringStartsWith(("topic",), "orders"),
        EqualTo(("headers", "key"), 1),
        EqualTo(OFFSET, True),
        EqualTo(OFFSET, 1.5),
        In(OFFSET, (1, 2)),
        In(PARTITION, (1, None)),
        Not(EqualTo(PARTITION, 1)),
    ],
    ids=repr,
)
def test_every_other_filter_is_left_to_spark_and_bounds_nothing(of: Any) -> None:
    assert pushed([of]) == (NOTHING, (of,))


def test_partitions_are_read_if_every_filter_allows_it() -> None:
    of, _ = pushed([In(PARTITION, (1, 3, 5)), LessThan(PARTITION, 4)])
    assert [p for p in range(8) if of.reads(p)] == [1, 3]
    nothing, _ = pushed([EqualTo(KEY, b"a"), EqualTo(KEY, b"b")])
    assert not nothing.reads(0)
