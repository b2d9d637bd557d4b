"""The tables of metrics have every name that a report has, and no other."""

import re

from broker_jars import ROOT
from coordinator.member.lane_report import LIMITS
from coordinator.member.progress_report import behind_latest, failing_progress, lane_progress
from coordinator.plan.cost.quotas import Why
from coordinator.progress.failing import FailingRecord
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis import lane_lines
from coordinator.redis.lane_lines import BatchLine, CostKind, LaneLine, LaneReport
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import TopicPartition
from pages.metrics import BATCH, COUNTERS, LANE, PROGRESS, REASONS, Metric

TP = TopicPartition("orders", 0)
LINE = LaneLine(TP, WHOLE, 5, 45, 12, False, 9.1, 100.0, CostKind.SURE, 90, "budget")


def names(table: tuple[Metric, ...]) -> list[str]:
    return [metric.name for metric in table]


def test_progress_of_a_query() -> None:
    offset = StreamOffset("g", "m", lanes={TP: (Lane(WHOLE, "e.1", 5),)})
    shown = behind_latest(offset, {TP: 30}) | lane_progress(LaneReport((LINE,), 1, 1, 0, "-"))
    shown |= failing_progress((FailingRecord(TP, 5, 7, 1, 0),), 0, 0)  # only with on_error
    assert {*shown} == {name for name in names(PROGRESS) if name != "filteredRecords"}  # only with a filter


def test_a_lane() -> None:
    where, *values = str(LINE).split(" ")[2:]
    assert HashRange.parse(where) == WHOLE
    assert [value.partition("=")[0] for value in values] == names(LANE)


def test_a_batch() -> None:
    assert [*BatchLine("m-1", 10, 100, 1.0, 1, "-").fields] == names(BATCH)


def test_a_counter_is_a_field_that_a_script_writes() -> None:
    scripts = "".join(f.read_text(encoding="utf-8") for f in (ROOT / "coordinator/redis/lua").rglob("*.lua"))
    written = re.findall(r"redis\.call\('H(?:SET|INCRBY)', [^,]+, '(\w+)'", scripts)
    assert [name for name in names(COUNTERS) if name not in written] == []


def test_the_bounds_are_those_that_a_lane_can_have() -> None:
    whose = (lane_lines.ROOM, lane_lines.OLDER, lane_lines.JOINED, lane_lines.LEAD, lane_lines.FAILING)
    of_planner = {*Why, *(f"{Why.CEILING}: {who}" for who in whose)}
    of_report = {lane_lines.PARKED, lane_lines.TRIED, LIMITS}
    assert REASONS.keys() == {str(why) for why in of_planner} | of_report
