"""The last steps of latestOffset: a batch is planned, or there is nothing to do."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.assignment.policies import Policy
from coordinator.errors import TooManyFailingKeysError
from coordinator.member.batch import Batch
from coordinator.member.decision import Decision, LookAgain, Return
from coordinator.member.evidence import Evidence
from coordinator.member.inbox import Reach
from coordinator.member.limits import Limits
from coordinator.member.planning import end_run, look_closer, plan_batch
from coordinator.member.requests import Finish, Heartbeat, ReadReach, ReadTopics
from coordinator.member.state import Failing, Growing, Pacing, Reading, State, Strikes, Turn
from coordinator.plan.planning import Cutting, OwnedRange, OwnedRanges
from coordinator.progress.failing import FailingRecord
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import Bounds
from states import (
    EPOCH,
    LEFT,
    LIFE,
    LOG,
    MEMBER,
    NOW,
    ORDERS,
    RECREATED,
    RIGHT,
    TP,
    TP1,
    call,
    decided,
    end_of,
    fails,
    held,
    owning,
    owns,
    struck,
)

NOTHING: tuple[OwnedRanges, Any] = ({}, {})
IDLE, FRESH_TURN = Pacing(idle=NOTHING), Turn(fresh=True)


def test_nothing_to_read__earlier_ranges_are_good_enough() -> None:
    state = owns(pace=IDLE)
    assert decided(look_closer, state, call()) == Decision(state)


def test_stale_ranges__look_again_before_a_plan() -> None:
    then = replace(owns(), owning=owning(stale=True))
    assert decided(look_closer, owns(), call()) == Decision(then, (), LookAgain())


def test_part_of_the_start_was_skipped__look_again_before_a_plan_too() -> None:
    state = owns(pace=IDLE, turn=Turn(committed=True, skipped=True))
    assert decided(look_closer, state, call()) == Decision(replace(state, owning=owning(stale=True)), (), LookAgain())


@pytest.mark.parametrize("lease_end_ms", [pytest.param(NOW, id="now"), pytest.param(NOW - 1, id="before")])
def test_lease_over__heartbeat_before_a_plan(lease_end_ms: int) -> None:
    state = owns(life=replace(LIFE, lease_end_ms=lease_end_ms), turn=FRESH_TURN)
    assert decided(look_closer, state, call()) == Decision(state, (Heartbeat(),), LookAgain())


TOPICS = ReadTopics()


def test_within_the_lease__plan_of_topics_that_are_the_same() -> None:
    state = owns(life=replace(LIFE, lease_end_ms=NOW + 1), turn=FRESH_TURN)
    decision = decided(look_closer, state, call(), (TOPICS, {"orders": ORDERS}))
    assert decision == Decision(replace(state, log=replace(LOG, beginnings=None)))


def test_a_topic_was_recreated_since__look_again() -> None:
    state = owns(turn=FRESH_TURN)
    decision = decided(look_closer, state, call(), (TOPICS, {"orders": RECREATED}))
    log = replace(LOG, topics={"orders": RECREATED}, beginnings=None, reached={}, bounds={})
    assert decision == Decision(replace(state, log=log), (), LookAgain())


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="something to read"),
        pytest.param({"pace": IDLE, "turn": Turn(committed=True, skipped=True)}, id="part of the start was skipped"),
    ],
)
def test_a_batch_is_due__the_run_does_not_end(changes: dict[str, Any]) -> None:
    state = owns(**changes)
    assert decided(end_run, state, call()) == Decision(state)


def test_nothing_to_read__the_call_ends_without_an_offset() -> None:
    state = owns(pace=IDLE)
    assert decided(end_run, state, call()) == Decision(state, (), Return(None))


AT_TARGET = replace(IDLE, targets={TP: 100, TP1: 50})


@pytest.mark.parametrize(
    ("finished", "outcome"),
    [
        pytest.param(True, Return(None), id="all at their targets: the run ends"),
        pytest.param(False, LookAgain(), id="others still read: look again"),
    ],
)
def test_available_now_with_nothing_to_read(finished: bool, outcome: Any) -> None:
    state = owns(pace=AT_TARGET)
    decision = decided(end_run, state, call(), (Finish({TP: 100, TP1: 50}), finished))
    assert decision == Decision(replace(state, pace=replace(AT_TARGET, helps=not finished)), (), outcome)


def test_available_now__redis_learns_which_topics_are_read_in_partition_order() -> None:
    state = owns(pace=AT_TARGET)
    state = replace(state, owning=replace(state.owning, policy=Policy(refused_topics=frozenset({"orders"}))))
    asked = Finish({TP: 100, TP1: 50}, in_order=frozenset({"orders"}))
    assert decided(end_run, state, call(), (asked, True)) == Decision(state, (), Return(None))


def test_available_now__parked_keys_alone_fill_a_partition() -> None:
    """Rule: deferred-keys-cap."""
    parked = FailingRecord(TP, 5, 10, 2, NOW, parked=True)
    state = owns(pace=AT_TARGET, failing=Failing((parked,), NOW, frozenset({TP})))
    outcomes = [
        decided(end_run, state, call(max_deferred_keys=1), (Finish({TP: 100, TP1: 50}), done)).outcome
        for done in (False, True)
    ]
    assert outcomes == [fails(TooManyFailingKeysError, "1 parked keys"), Return(None)]


def test_available_now__partitions_that_wait_for_older_ones_are_left_out() -> None:
    state = owns(pace=AT_TARGET, growing=Growing(closed=frozenset({TP1})))
    assert decided(end_run, state, call(), (Finish({TP: 100}), True)) == Decision(state, (), Return(None))


WORK = {TP: (OwnedRange(WHOLE, 10, EPOCH),)}


def planned(state: State, end: StreamOffset, **changes: Any) -> Decision:
    """The decision to return this offset, whose slices may be written from now on."""
    return Decision(replace(state, evidence=Evidence(unconfirmed=(end,)), **changes), (), Return(end))


def reads(until: int, **changes: Any) -> State:
    return replace(owns(reading=Reading(work=WORK, until={TP: until})), **changes)


def test_something_to_read__plan() -> None:
    state = reads(20)
    batch = Batch(end_of(10, 20))
    assert decided(plan_batch, state, call()) == planned(state, batch.end, batch=batch, pace=Pacing(planned_ms=NOW))


def test_a_batch_that_was_read_for_others__then_the_run_looks_again_whether_it_has_ended() -> None:
    state = reads(20, pace=Pacing(helps=True))
    batch = Batch(end_of(10, 20))
    assert decided(plan_batch, state, call()) == planned(state, batch.end, batch=batch, pace=Pacing(planned_ms=NOW))


def test_no_task_reaches_this_process__it_is_planned_as_without_early_ends() -> None:
    decision = decided(plan_batch, reads(20), call(early_ends=True), (ReadReach(), Reach.NONE))
    assert decision.outcome == Return(end_of(10, 20))


@pytest.mark.parametrize(
    ("reading", "limits"),
    [
        pytest.param(Reading(work=WORK, until={TP: 20}), Limits(everything=True), id="Trigger.Once"),
    ],
)
def test_all_of_a_batch_must_be_read__its_tasks_may_not_end_early(reading: Reading, limits: Limits) -> None:
    decision = decided(plan_batch, owns(reading=reading), call(limits=limits, early_ends=True))
    assert decision.outcome == Return(end_of(10, 20))


def test_nothing_to_read_but_the_offset_must_change__the_batch_before_stays() -> None:
    before = Batch(end_of(0, 10))
    state = reads(10, batch=before)
    assert decided(plan_batch, state, call()) == planned(state, end_of(10, 10))


def test_a_struck_lane_is_tried__the_batch_remembers_it_and_the_strikes() -> None:
    state = reads(20, strikes=Strikes((struck(),), NOW))
    state = replace(state, reading=replace(state.reading, trials={(TP, WHOLE): 1}))
    batch = Batch(end_of(10, 20), {(TP, WHOLE): 1}, (struck(),))
    assert decided(plan_batch, state, call()).state.batch == batch


def test_the_cost_model_cuts__its_lanes_count() -> None:
    state = reads(20)
    state = replace(state, reading=replace(state.reading, cutting=Cutting(1).at({TP: (RIGHT.lo,)})))
    lanes = {TP: tuple(Lane(h, EPOCH, 10, (OffsetRange(10, 20),)) for h in (LEFT, RIGHT))}
    assert decided(plan_batch, state, call(cutting=Cutting(4))) == planned(
        state,
        replace(end_of(10, 20), lanes=lanes),
        batch=Batch(replace(end_of(10, 20), lanes=lanes)),
        pace=Pacing(planned_ms=NOW),
    )


def test_the_offset_names_the_leader_epoch_of_each_log() -> None:
    state = reads(20, log=replace(LOG, bounds={TP: Bounds(0, 100, epoch=4)}))
    end = replace(end_of(10, 20), leader_epochs={TP: 4})
    assert decided(plan_batch, state, call()).outcome == Return(end)


def test_the_offset_names_the_group_the_member_and_the_reset_epoch() -> None:
    state = reads(20, owning=owning(replace(held(10), reset=3)))
    outcome = decided(plan_batch, state, call()).outcome
    assert outcome == Return(replace(end_of(10, 20), reset=3))
    assert isinstance(outcome, Return)
    assert isinstance(outcome.value, StreamOffset)
    assert (outcome.value.group, outcome.value.member) == ("g", MEMBER)
