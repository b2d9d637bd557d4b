"""Two slices and their costs, for the tests of cost reports."""

from dataclasses import replace

from coordinator.plan.cost.telemetry import KeyCost, SliceCost
from coordinator.progress.slices import Slice
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

SLICE = Slice(TopicPartition("orders", 3), HashRange(10, HASH_MAX), OffsetRange(100, 200))
OTHER = Slice(TopicPartition("orders", 4), WHOLE, OffsetRange(0, 9))
BEGUN = SliceCost.nothing(SLICE)
COST = replace(
    BEGUN,
    rows=50,
    bytes=5_000,
    read_ms=1.5,
    function_ms=80.25,
    keys=(KeyCost(12, 7.5, 50),),
    finished=True,
    filtered=40,
)
