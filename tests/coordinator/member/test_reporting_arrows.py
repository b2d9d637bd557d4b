"""When a member shows what its lanes do."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.cost.profile import Cell
from coordinator.cost.quotas import Quota, Why
from coordinator.member.decision import Decision
from coordinator.member.reporting import show_lanes
from coordinator.member.requests import DescribeLanes, ShowLanes
from coordinator.member.state import Reading, Shown, State, Strikes
from coordinator.plan.planning import Cutting, OwnedRange
from coordinator.ranges import WHOLE
from coordinator.reports.lane_lines import CostKind, LaneLine, LanesTold
from coordinator.reports.lane_report import Planned
from states import EPOCH, LEFT, NONCE, NOW, RIGHT, TP, asks, call, decided, joined, struck

QUOTA = Quota(TP, OwnedRange(WHOLE, 10, EPOCH), 100, Cell(WHOLE, 1.0), 0.0)
READING = Reading(quotas=(QUOTA,), until={TP: 100})
DESCRIBE = DescribeLanes(Planned((QUOTA,), {TP: 100}, ()), None)


def lanes(lag: int) -> LanesTold:
    line = LaneLine(TP, WHOLE, 10, lag, None, False, 0.0, 0.0, CostKind.UNKNOWN, lag, "all there is")
    return LanesTold((line,), 1)


def shown(told: LanesTold, looked_at_ms: int | None = NOW, nonce: str = NONCE, **changes: Any) -> Shown:
    known = Shown(looked_at_ms=looked_at_ms, quotas=(QUOTA,), request=ShowLanes(told.lines, 0), nonce=nonce, lanes=told)
    return replace(known, **changes)


def member(of: Shown, **reading: Any) -> State:
    return joined(reading=replace(READING, **reading), shown=of)


def test_never_shown__show_the_lanes() -> None:
    told = lanes(90)
    decision = decided(show_lanes, member(Shown()), call(), (DESCRIBE, told), (ShowLanes(told.lines, 0), True))
    assert decision == Decision(member(shown(told)))


def test_redis_did_not_store_them__try_again_at_the_next_look() -> None:
    told = lanes(90)
    decision = decided(show_lanes, member(Shown()), call(), (DESCRIBE, told), (ShowLanes(told.lines, 0), False))
    assert decision == Decision(member(shown(told, request=None, nonce="")))


def test_shown_within_this_second__do_not_describe_them() -> None:
    state = member(shown(lanes(90), NOW - 999))
    assert decided(show_lanes, state, call()) == Decision(state)


def test_idle_and_the_same__describe_nothing() -> None:
    state = member(shown(lanes(0), NOW - 1_000))
    assert decided(show_lanes, state, call()) == Decision(member(shown(lanes(0))))


def test_something_waits_and_the_lines_are_the_same__redis_stores_nothing() -> None:
    state = member(shown(lanes(90), NOW - 1_000))
    assert decided(show_lanes, state, call(), (DESCRIBE, lanes(90))) == Decision(member(shown(lanes(90))))


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(shown(lanes(0), NOW - 1_000, quotas=()), id="other quotas"),
        pytest.param(shown(lanes(0), NOW - 1_000, nonce="n-0"), id="another nonce"),
        pytest.param(shown(lanes(80), NOW - 1_000), id="something waited"),
    ],
)
def test_something_has_changed__show_the_lanes(before: Shown) -> None:
    state, told = member(before), lanes(70)
    assert decided(show_lanes, state, call(), (DESCRIBE, told)) == asks(state, ShowLanes(told.lines, 0))


def test_slow_lanes__show_which_part_of_the_slots_they_take() -> None:
    slow = QUOTA._replace(piece=OwnedRange(RIGHT, 10, EPOCH), cell=Cell(RIGHT, 0.5, 100.0, sure=True), why=Why.BUDGET)
    quick = QUOTA._replace(piece=OwnedRange(LEFT, 10, EPOCH), cell=Cell(LEFT, 1.0, 1.0, sure=True))
    state = member(Shown(), quotas=(quick, slow))
    describe = DescribeLanes(Planned((quick, slow), {TP: 100}, ()), None)
    answers = (describe, lanes(90)), (ShowLanes(lanes(90).lines, 45), True)
    decision = decided(show_lanes, state, call(batch_budget_ms=10_000), *answers)
    assert decision.state.shown.slow_percent == 45


def test_a_trial__is_described_with_its_lane_its_strikes_and_its_cuts() -> None:
    ceilings = (("older partitions", {TP: (QUOTA.piece,)}),)
    cut = Cutting(1).at(RIGHT.lo)
    state = member(Shown(), trial_lane=(TP, LEFT), ceilings=ceilings, cutting=cut)
    state = replace(state, strikes=Strikes((struck(),), NOW))
    planned = Planned((QUOTA,), {TP: 100}, (struck(),), (RIGHT.lo,), (TP, LEFT), ceilings)
    assert decided(show_lanes, state, call()) == asks(state, DescribeLanes(planned, None))
