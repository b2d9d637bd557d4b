"""When a batch is planned, and how far it reads."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.member.decision import Decision, Limits, LookAgain
from coordinator.member.pacing import adopt_targets, ends_of, pace_batch, rest
from coordinator.member.state import Owning, Pace, Reading, State
from coordinator.plan.planning import OwnedRange, OwnedRanges
from coordinator.ranges import WHOLE
from coordinator.subscription import Bounds
from states import EPOCH, GROWN_LOG, NOW, TP, TP1, call, decided, joined

WORK: OwnedRanges = {TP: (OwnedRange(WHOLE, 10, EPOCH),)}
DONE: OwnedRanges = {TP: (OwnedRange(WHOLE, 100, EPOCH),)}
END, NO_FURTHER = {TP: 100}, {TP: 0}


@pytest.mark.parametrize(
    ("idle_ms", "outcome"),
    [
        pytest.param(NOW, LookAgain(250), id="just now"),
        pytest.param(NOW - 249, LookAgain(1), id="almost long enough"),
    ],
)
def test_a_look_found_nothing__rest(idle_ms: int, outcome: LookAgain) -> None:
    decision = decided(rest, joined(pace=Pace(idle_ms=idle_ms)), call())
    assert decision == Decision(joined(), (), outcome)


@pytest.mark.parametrize("idle_ms", [pytest.param(None, id="not idle"), pytest.param(NOW - 250, id="long enough")])
def test_rested__go_on(idle_ms: int | None) -> None:
    assert decided(rest, joined(pace=Pace(idle_ms=idle_ms)), call()) == Decision(joined())


def test_no_targets__adopt_none() -> None:
    state = joined(owning=Owning(targets={TP: 50}))
    assert decided(adopt_targets, state, call()) == Decision(state)


@pytest.mark.parametrize(
    ("target", "then"),
    [
        pytest.param({TP: 50}, {TP: 50}, id="within the log"),
        pytest.param({TP: 150}, {TP: 100}, id="the log was cut since"),
        pytest.param({TP: 50, TP1: 7}, {TP: 50}, id="a partition that is gone"),
    ],
)
def test_targets__none_that_the_log_cannot_reach(target: Any, then: Any) -> None:
    state = joined(pace=Pace(target), owning=Owning(targets={TP1: 9}))
    decision = decided(adopt_targets, state, call())
    assert decision == Decision(replace(state, pace=Pace(then, {TP1: 9})))


@pytest.mark.parametrize(
    ("pace", "ends"),
    [
        pytest.param(Pace(), {TP: 100, TP1: 50}, id="no targets: the log ends"),
        pytest.param(Pace({TP: 70, TP1: 60}), {TP: 70, TP1: 50}, id="the targets, at most the log ends"),
        pytest.param(Pace({TP: 70}, {TP1: 20}), {TP: 70, TP1: 20}, id="a new partition: the target of others"),
        pytest.param(Pace({TP: 70}), {TP: 70, TP1: 0}, id="a new partition that nobody waits for: nothing"),
    ],
)
def test_partition__ends_for_this_run(pace: Pace, ends: Any) -> None:
    assert ends_of(pace, GROWN_LOG.bounds) == ends


def reading(work: OwnedRanges, **changes: Any) -> State:
    return joined(reading=Reading(work=work), **changes)


def paced(state: State, until: Any, **pace: Any) -> Decision:
    """The decision to read each partition so far."""
    return Decision(replace(state, reading=replace(state.reading, until=until), pace=replace(state.pace, **pace)))


def test_something_to_read__up_to_the_log_end() -> None:
    state = reading(WORK, pace=Pace(idle=(DONE, END)))
    assert decided(pace_batch, state, call()) == paced(state, END, idle=None)


def test_nothing_to_read__idle() -> None:
    state = reading(DONE)
    assert decided(pace_batch, state, call()) == paced(state, END, idle=(DONE, END), idle_ms=NOW)


def test_still_nothing_to_read__idle_since_now() -> None:
    state = reading(DONE, pace=Pace(idle=(DONE, END)))
    assert decided(pace_batch, state, call()) == paced(state, END, idle_ms=NOW)


def test_max_offsets_per_trigger__no_further() -> None:
    state = reading(WORK)
    assert decided(pace_batch, state, call(limits=Limits(max_offsets=30))) == paced(state, {TP: 40})


def test_the_target_is_reached__idle() -> None:
    state = reading(WORK, pace=Pace({TP: 10}))
    assert decided(pace_batch, state, call()) == paced(state, {TP: 10}, idle=(WORK, {TP: 10}), idle_ms=NOW)


WAITS = Limits(min_offsets=91, max_delay_ms=1_000)


@pytest.mark.parametrize(
    "pace",
    [
        pytest.param(Pace(), id="the first batch never waits"),
        pytest.param(Pace(planned_ms=NOW - 1_000), id="max.trigger.delay is over"),
        pytest.param(Pace({TP: 100}, planned_ms=NOW), id="AvailableNow never waits"),
    ],
)
def test_min_offsets_per_trigger__does_not_wait(pace: Pace) -> None:
    state = reading(WORK, pace=pace)
    assert decided(pace_batch, state, call(limits=WAITS)) == paced(state, END)


def test_min_offsets_per_trigger_is_not_reached__wait_for_more() -> None:
    state = reading(WORK, pace=Pace(planned_ms=NOW - 999))
    decision = decided(pace_batch, state, call(limits=WAITS))
    assert decision == paced(state, NO_FURTHER, idle=(WORK, NO_FURTHER), idle_ms=NOW)


def test_min_offsets_per_trigger_is_reached__read() -> None:
    state = reading(WORK, pace=Pace(planned_ms=NOW - 999))
    assert decided(pace_batch, state, call(limits=replace(WAITS, min_offsets=90))) == paced(state, END)
    assert state.log.bounds == {TP: Bounds(0, 100)}
