"""lastProgress beside the log ends: lag by Spark's own names, lanes and the reasons of their limits."""

from dataclasses import replace

from coordinator.member.progress_report import MOST_NAMED, behind_latest, lane_progress
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.lane_lines import NOTHING, PARKED, CostKind, LaneLine, LaneReport
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition

TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
LOWER, UPPER = cuts(2)
SLOW = LaneLine(TP, LOWER, 5, 9, 12, False, 3.5, 100.0, CostKind.SURE, 9, "budget")
QUICK = replace(SLOW, hashes=UPPER, record_ms=1.0, why=NOTHING)


def test_a_partition_is_behind_by_its_lane_furthest_back() -> None:
    lanes = {
        TP: (Lane(LOWER, "e.1", 5, (OffsetRange(5, 10),)), Lane(UPPER, "e.1", 20)),
        OTHER: (Lane(WHOLE, "e.2", 7),),
    }
    assert behind_latest(StreamOffset("g", "m", lanes=lanes), {TP: 30, OTHER: 6}) == {
        "minOffsetsBehindLatest": "0",  # never negative: the end is of an earlier look
        "maxOffsetsBehindLatest": "20",
        "avgOffsetsBehindLatest": "10.0",
    }
    assert behind_latest(StreamOffset("g"), {TP: 30}) == {}


def test_the_report_counts_lanes_and_names_their_limits() -> None:
    assert lane_progress(LaneReport((replace(SLOW, why=PARKED), QUICK), 2, 1, 1, "orders 0: 100 ms a record")) == {
        "lanes": 2,
        "limitedLanes": 1,
        "limited": {SLOW.name: "parked"},
        "parkedLanes": 1,
        "slowestLane": "orders 0: 100 ms a record",
    }
    many = tuple(replace(SLOW, hashes=h) for h in cuts(2 * MOST_NAMED))
    assert lane_progress(LaneReport(many, 9_000, 800))["limitedLanes"] == 800
    assert lane_progress(LaneReport(many, 9_000, 800))["limited"] == {x.name: "budget" for x in many[:MOST_NAMED]}


def test_without_lanes_the_report_is_empty() -> None:
    assert lane_progress(LaneReport()) == {}
