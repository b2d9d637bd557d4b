"""A member's report on its lanes: rate, cost, lag, quota and its reason, and the stuck part of its slots."""

import re
from dataclasses import replace
from math import ceil

import pytest

from coordinator.errors import StateFormatError
from coordinator.member.lane_report import LIMITS, Planned, batch_line, lane_report, slow_part
from coordinator.plan.cost.batch_cost import BatchCost, Ended, Load
from coordinator.plan.cost.profile import Cell
from coordinator.plan.cost.quotas import Budget, Quota, Why
from coordinator.plan.cost.telemetry import SliceCost
from coordinator.plan.planning import OwnedRange
from coordinator.plan.poison import Strike
from coordinator.progress.end_history import EndHistory
from coordinator.redis.lane_lines import (
    LEAD,
    MOST_REPORTED,
    NOTHING,
    OLDER,
    PARKED,
    ROOM,
    TRIED,
    BatchLine,
    CostKind,
    LaneLine,
    interesting,
    lines_of,
    lines_text,
)
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition

TP = TopicPartition("orders", 0)


LOWER, UPPER = cuts(2)


BUDGET = Budget(10_000, 2)


SLOW = Quota(TP, OwnedRange(LOWER, 100, "e.1", 280), 1_000, Cell(LOWER, 0.5, 100.0), 1.0, Why.BUDGET)


QUICK = Quota(TP, OwnedRange(UPPER, 1_000, "e.1"), 1_000, Cell(UPPER, 0.5), 1.0, Why.NOTHING)


LINE = LaneLine(TP, LOWER, 100, 450, 12, False, 9.0, 100.0, CostKind.SURE, 90, "budget")


STRUCK = Strike(TP, LOWER, OffsetRange(100, 200), count=1)


def lines(until: int = 1_000, strikes: tuple[Strike, ...] = ()) -> list[LaneLine]:
    ended = Ended(BatchCost((Load((TP, WHOLE), 0, 100, 180.0),), 9_000.0), 10_000.0)
    history = EndHistory()
    for now_ms, end in ((0, 100), (8_000, 500), (19_000, 1_000)):
        history.saw({TP: end}, now_ms)
    report = lane_report(Planned((SLOW, QUICK), {TP: until}, strikes), ended, history, 20_000)
    assert (report.lanes, report.limited, report.slowest) == (2, 1, f"{LINE.name}: 100 ms a record")
    assert report.parked == sum(line.why == PARKED for line in report.lines)
    return list(report.lines)


def test_a_lane_line_has_rate_cost_lag_quota_and_reason() -> None:
    assert lines() == [
        LINE,  # its half of the 18 records per second of the lane that it was cut out of; behind since 8 s
        LaneLine(TP, UPPER, 1_000, 0, 0, False, 9.0, 1.0, CostKind.GUESSED, 0, NOTHING),
    ]


def test_the_report_has_the_slot_time_of_unread_and_of_arriving_records() -> None:
    """900 offsets wait, of 50 ms each. In each of 20 s, 45 came: 50 ms each in one lane, and 0.5 ms in the other."""
    history = EndHistory()
    for now_ms, end in ((0, 100), (20_000, 1_000)):
        history.saw({TP: end}, now_ms)
    report = lane_report(Planned((SLOW, QUICK), {TP: 1_000}, ()), None, history, 20_000)
    assert (report.backlog_ms, report.load_percent) == (45_000, ceil(100 * 45 * 0.0505))
    held = SLOW._replace(why=Why.CEILING)
    assert lane_report(Planned((held, QUICK), {TP: 1_000}, ()), None, history, 20_000).backlog_ms == 9_000
    parked = Planned((SLOW, QUICK), {TP: 1_000}, (replace(STRUCK, parked=True),))
    assert lane_report(parked, None, history, 20_000).backlog_ms == 0
    unknown = [q._replace(cell=replace(q.cell, record_ms=None), rate_ms=0.0) for q in (SLOW, QUICK)]
    report = lane_report(Planned(unknown, {TP: 1_000}, ()), None, history, 20_000)
    assert (report.backlog_ms, report.load_percent) == (0, 0)


@pytest.mark.parametrize(
    ("until", "strikes", "why"),
    [
        pytest.param(1_000, (), "budget", id="the planner's own reason"),
        pytest.param(200, (), LIMITS, id="Spark's limit, where it is lower"),
        pytest.param(1_000, (STRUCK,), TRIED, id="a struck lane that is tried"),
        pytest.param(1_000, (replace(STRUCK, parked=True),), PARKED, id="a parked lane"),
        pytest.param(1_000, (replace(STRUCK, hashes=UPPER, parked=True),), "budget", id="another is parked"),
    ],
)
def test_a_lane_line_has_the_reason_that_bounds_it(until: int, strikes: tuple[Strike, ...], why: str) -> None:
    assert lines(until, strikes)[0].why == why


@pytest.mark.parametrize(
    ("ceilings", "why"),
    [
        pytest.param((200, 200, 200), "ceiling: individual commits", id="the first limit that is as low"),
        pytest.param((None, 200, 200), "ceiling: older partitions", id="the second"),
        pytest.param((500, 300, 200), "ceiling: maxLaneLead", id="the last, lower than the others"),
        pytest.param((None, None, None), "ceiling", id="none of these"),
    ],
)
def test_a_ceiling_is_shown_with_the_limit_that_set_it(ceilings: tuple[int | None, ...], why: str) -> None:
    bound = SLOW._replace(piece=OwnedRange(LOWER, 100, "e.1", 200), why=Why.CEILING)
    other = OwnedRange(UPPER, 1_000, "e.1", 100)
    work = [{TP: (OwnedRange(LOWER, 100, "e.1", ceiling), other)} for ceiling in ceilings]
    planned = Planned((bound, QUICK), {TP: 1_000}, (), ceilings=[*zip((ROOM, OLDER, LEAD), work, strict=True)])
    assert lane_report(planned, None, EndHistory(), 20_000).lines[0].why == why


@pytest.mark.parametrize(("lag", "rate", "seconds"), [(450, 9.0, 50), (451, 9.0, 51), (0, 0.0, 0), (1, 0.0, None)])
def test_a_lane_drains_at_the_rate_of_its_last_batch(lag: int, rate: float, seconds: int | None) -> None:
    assert replace(LINE, lag=lag, rate=rate).drain_s == seconds


@pytest.mark.parametrize(
    "line",
    [
        LINE,
        replace(LINE, lag_s=None),
        replace(LINE, lag_at_least=True, why="suspect, on trial", record_ms=0.0, cost=CostKind.UNKNOWN),
    ],
    ids=["known", "its age is not known", "at least so old, a reason of several words"],
)
def test_lanes_come_back_from_their_text(line: LaneLine) -> None:
    assert lines_of(lines_text([line, LINE])) == (line, LINE)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        f"{LINE}".replace("lag=", "leg="),
        f"{LINE}".replace("=sure", "=maybe"),
        f"{LINE}".replace("lag=", "lag=1" + "0" * 400),
        re.sub("rate=[0-9.]+", "rate=nan", f"{LINE}"),
        re.sub("rate=[0-9.]+", "rate=inf", f"{LINE}"),
    ],
)
def test_a_damaged_line_is_a_named_error(text: str) -> None:
    with pytest.raises(StateFormatError, match="lane"):
        lines_of(text)
    with pytest.raises(StateFormatError, match="batch"):
        BatchLine.of({"member": "m", "rows": text})


def test_of_very_many_lanes_all_are_counted_and_the_limited_and_furthest_behind_are_shown() -> None:
    whole = cuts(10_000)
    near = [QUICK._replace(piece=OwnedRange(h, 999, "e.1"), cell=Cell(h, 0.5)) for h in whole]
    far, bounded = (
        near[7_000]._replace(piece=OwnedRange(whole[7_000], 5, "e.1")),
        near[9_000]._replace(why=Why.TURN),
    )
    quotas = [*near[:7_000], far, *near[7_001:9_000], bounded, *near[9_001:]]
    report = lane_report(Planned(quotas, {TP: 1_000}, ()), None, EndHistory(), 20_000)
    assert (report.lanes, report.limited, len(report.lines)) == (10_000, 1, MOST_REPORTED)
    assert [line.hashes for line in report.lines[:2]] == [whole[9_000], whole[7_000]]


def test_parked_lanes_and_limited_lanes_far_behind_are_shown_first() -> None:
    quick, parked = replace(LINE, why=NOTHING), replace(LINE, why=PARKED, lag_s=0)
    further = replace(LINE, lag_s=99)
    assert interesting([quick, LINE, further, parked]) == [parked, further, LINE, quick]


def test_a_batch_is_shown_with_its_slowest_lane() -> None:
    def load(task: int, rows: int, ms: float) -> Load:
        cost = SliceCost(TP, cuts(2)[task], OffsetRange(0, 9), rows, 10 * rows, 1.0, ms, (), finished=True)
        return Load((TP, cuts(2)[task]), task, 9, rows, cost)

    ended = Ended(BatchCost((load(0, 3, 900.0), load(1, 6, 6.0)), 900.0), 1_250.0)
    report = BatchLine("m-1", 9, 90, 1.25, 2, f"orders 0 {LOWER}", reading=0)
    assert batch_line("m-1", ended) == report
    assert BatchLine.of(report.fields) == report
    filtered = BatchCost(tuple(x._replace(rows=8.0) for x in ended.batch.loads), 900.0)
    assert batch_line("m-1", replace(ended, batch=filtered)) == report, "dropped records are not shown"
    unreported = Ended(BatchCost((load(0, 3, 9.0)._replace(cost=None), load(1, 6, 6.0)), 9.0), 10.0)
    line = batch_line("m-1", unreported)
    assert (line.bytes, line.reading) == (None, None)


def test_the_reading_of_a_batch_is_that_of_the_task_that_read_longest() -> None:
    def load(task: int, read_ms: float) -> Load:
        cost = SliceCost(TP, cuts(3)[task], OffsetRange(0, 9), 9, 90, read_ms, 500.0, (), finished=True)
        return Load((TP, cuts(3)[task]), task % 2, 9, 9, cost)

    ended = Ended(BatchCost((load(0, 3_000.0), load(1, 7_000.0), load(2, 5_100.0)), 9_000.0), 10_000.0)
    assert batch_line("m-1", ended).reading == 81  # lanes 0 and 2 were one task


@pytest.mark.parametrize(
    ("reading", "seconds", "bound"),
    [
        pytest.param(80, 5.0, True, id="most of a long batch"),
        pytest.param(79, 60.0, False, id="processing takes its part"),
        pytest.param(100, 4.9, False, id="a short batch keeps up with the log"),
        pytest.param(None, 60.0, False, id="a task sent no report"),
    ],
)
def test_reading_is_the_bottleneck_of_a_long_batch_that_mostly_reads(
    reading: int | None, seconds: float, bound: bool
) -> None:
    assert BatchLine("m-1", 1_000, None, seconds, 2, "-", reading).reading_bound == bound


BEHIND = QUICK._replace(piece=OwnedRange(UPPER, 100, "e.1", 280), cell=Cell(UPPER, 0.5, 1.0), why=Why.BUDGET)


@pytest.mark.parametrize(
    ("quotas", "part"),
    [
        pytest.param([SLOW, QUICK], 0.45, id="a slow key bounded by the budget"),
        pytest.param([SLOW._replace(why=Why.TURN), QUICK], 0.45, id="... or by its turn: its cost is its part"),
        pytest.param([SLOW._replace(why=Why.NOTHING), QUICK], 0.0, id="... it keeps up"),
        pytest.param([SLOW._replace(cell=replace(SLOW.cell, record_ms=None)), QUICK], 0.0, id="... a guess"),
        pytest.param([BEHIND, BEHIND._replace(piece=SLOW.piece)], 0.0, id="an even backlog"),
        pytest.param([SLOW], 0.0, id="nothing but slow records: they are as usual"),
        pytest.param([SLOW._replace(cell=replace(SLOW.cell, record_ms=1.5)), BEHIND], 0.0, id="not that much dearer"),
        pytest.param([SLOW._replace(cell=Cell(LOWER, 0.4, 100.0)), BEHIND], 0.36, id="both bounded"),
    ],
)
def test_lanes_that_are_slow_and_cannot_keep_up_take_part_of_the_slots(quotas: list[Quota], part: float) -> None:
    assert slow_part(quotas, BUDGET) == pytest.approx(part)
    assert slow_part(quotas, Budget(0, 2)) == 0
