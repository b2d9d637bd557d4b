"""Reports of a task about its slices are bounded before a plan uses them."""

from dataclasses import replace

import pytest

from coordinator.plan.cost.telemetry import MOST_KEYS, KeyCost, SliceCost
from coordinator.progress.slices import Slice
from coordinator.values.ranges import HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

SLICE = Slice(TopicPartition("orders", 0), HashRange(10, 19), OffsetRange(100, 200))
COST = SliceCost(SLICE.topic_partition, SLICE.hashes, SLICE.offsets, 50, 5_000, 20.0, 300.0, (), finished=True)


def test_work_that_has_just_begun_has_cost_nothing() -> None:
    begun = SliceCost.nothing(SLICE)
    assert begun.slice == SLICE
    assert (begun.rows, begun.bytes, begun.read_ms, begun.function_ms, begun.finished) == (0, 0, 0.0, 0.0, False)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        pytest.param(COST, COST, id="a report within the limits is unchanged"),
        pytest.param(replace(COST, rows=101), replace(COST, rows=100), id="more rows than offsets"),
        pytest.param(replace(COST, rows=-1, bytes=-1), replace(COST, rows=0, bytes=0), id="fewer than none"),
        pytest.param(replace(COST, read_ms=1_001.0), replace(COST, read_ms=1_000.0), id="longer than the batch is old"),
        pytest.param(replace(COST, read_ms=-1.0, function_ms=-1.0), replace(COST, read_ms=0.0, function_ms=0.0),
                     id="no time runs backwards"),
        pytest.param(replace(COST, function_ms=3_999.0), replace(COST, function_ms=3_999.0),
                     id="threads of a function add up to more than the batch is old"),
        pytest.param(replace(COST, function_ms=4_001.0), replace(COST, function_ms=4_000.0),
                     id="... to no more than all of them had"),
        pytest.param(replace(COST, keys=(KeyCost(12, 2_000.0, 101), KeyCost(20, 1.0, 1))),
                     replace(COST, keys=(KeyCost(12, 1_000.0, 100),)), id="a key of another slice, one too slow"),
        pytest.param(replace(COST, keys=(KeyCost(12, 1.0, 1),) * 20),
                     replace(COST, keys=(KeyCost(12, 1.0, 1),) * MOST_KEYS), id="too many keys"),
    ],
)  # fmt: skip
def test_a_report_is_taken_within_reason(reported: SliceCost, expected: SliceCost) -> None:
    assert reported.clamped(most_ms=1_000.0, concurrency=4) == expected
