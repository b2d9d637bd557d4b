"""Lanes keep within `maxLaneLead` of one another."""

from dataclasses import replace
from typing import Any

from coordinator.assignment.policies import Policy
from coordinator.member.decision import Decision
from coordinator.member.kinds import Request
from coordinator.member.reading import limit
from coordinator.member.requests import Grant, ReadFirstTimes, ResolveOffsets
from coordinator.member.state import Reading, State
from coordinator.plan.cost.steering import Allowance
from coordinator.plan.planning import Cutting, OwnedRange
from coordinator.progress.ownership import Owned
from coordinator.redis.replies import Acquired
from coordinator.values.offset_spec import AtTimestamps, NoMatch
from coordinator.values.ranges import WHOLE, OffsetRange
from progresses import starting_at
from states import EPOCH, GROWN_LOG, LEFT, TP, TP1, Answer, asks, call, decided, joined, owning

ENDS = {TP: 100, TP1: 50}
ORDERED = Policy(refused_topics=frozenset({"orders"}))
LEAD = call(max_lead_ms=1_000)
FIRST_TIMES = ReadFirstTimes({TP: OffsetRange(10, 100), TP1: OffsetRange(20, 50)})
TIMES: Answer = FIRST_TIMES, {TP: 5_000, TP1: 9_000}


def member(at: int = 10, at_1: int = 20, **changes: Any) -> State:
    """The member owns both partitions, at these positions."""
    progress = {TP: starting_at(at), TP1: starting_at(at_1)}
    acquired = Acquired(
        0, {"orders": "id-1"}, {TP: (Owned(WHOLE, EPOCH),), TP1: (Owned(WHOLE, EPOCH),)}, progress, progress
    )
    return joined(log=GROWN_LOG, owning=owning(acquired), **changes)


def grant(ceiling: int | None, ceiling_1: int | None, at: int = 10, at_1: int = 20) -> Request[Any]:
    work = {TP: (OwnedRange(WHOLE, at, EPOCH, ceiling),), TP1: (OwnedRange(WHOLE, at_1, EPOCH, ceiling_1),)}
    return Grant(work, ENDS, everything=False, anew=((TP, WHOLE), (TP1, WHOLE)))


def too_late(after_ms: int) -> Request[Any]:
    """Where the first record lies that is too late."""
    return ResolveOffsets(AtTimestamps(dict.fromkeys(ENDS, after_ms), NoMatch.LATEST), (TP, TP1))


def test_a_lane_ahead__is_read_up_to_the_first_record_that_is_too_late() -> None:
    answers = TIMES, (too_late(6_001), {TP: 40, TP1: 20})
    assert decided(limit, member(), LEAD, *answers) == asks(member(), grant(40, 20))


def test_the_next_record_of_all_is_too_late_behind_it__the_oldest_lane_is_read_all_the_same() -> None:
    answers = TIMES, (too_late(6_001), {TP: 10, TP1: 20})
    assert decided(limit, member(), LEAD, *answers) == asks(member(), grant(11, 20))


def test_a_partition_without_a_time__does_not_hold_the_others() -> None:
    times: Answer = FIRST_TIMES, {TP: None, TP1: 9_000}
    answers = times, (too_late(10_001), {TP: 100, TP1: 50})
    assert decided(limit, member(), LEAD, *answers) == asks(member(), grant(100, 50))


def test_a_leader_falls_silent_meanwhile__nothing_of_it_is_read__and_the_others_go_on() -> None:
    later = ResolveOffsets(AtTimestamps({TP1: 10_001}, NoMatch.LATEST), (TP1,))
    answers: tuple[Answer, ...] = ((FIRST_TIMES, {TP1: 9_000}), (later, {TP1: 40}))
    decision = decided(limit, member(), LEAD, *answers)
    assert decision == asks(member(), grant(10, 40))
    asked = grant(10, 40), Allowance({}, (), Cutting(1))
    assert decided(limit, member(), LEAD, *answers, asked).state.reading.first_times == {(TP1, 20): 9_000}


def test_no_times_at_all__no_ceiling() -> None:
    assert decided(limit, member(), LEAD, (FIRST_TIMES, {TP: None, TP1: None})) == asks(member(), grant(None, None))


def test_a_partition_in_order_that_another_member_shares__does_not_hold_the_others() -> None:
    """It reads nothing until one member owns all of it, so its old records must not hold up that member's others."""
    progress = {TP: starting_at(10, LEFT), TP1: starting_at(20)}
    mine = {TP: (Owned(LEFT, EPOCH),), TP1: (Owned(WHOLE, EPOCH),)}
    ordered = owning(Acquired(0, {"orders": "id-1"}, mine, progress, progress), policy=ORDERED)
    state = joined(log=GROWN_LOG, owning=ordered)
    assert decided(limit, state, LEAD) == asks(state, ReadFirstTimes({TP1: OffsetRange(20, 50)}))


def test_times_that_were_read__are_not_read_again() -> None:
    known = Reading(first_times={(TP, 10): 5_000, (TP1, 19): 1})
    state = member(reading=known)
    asked = ReadFirstTimes({TP1: OffsetRange(20, 50)})
    assert decided(limit, state, LEAD) == asks(state, asked)
    both = replace(known, first_times={(TP, 10): 5_000, (TP1, 20): None})
    assert decided(limit, member(reading=both), LEAD) == asks(member(reading=both), too_late(6_001))


def test_times_that_were_read__are_remembered() -> None:
    asked, allowance = grant(40, 20), Allowance({}, (), Cutting(1))
    answers = TIMES, (too_late(6_001), {TP: 40, TP1: 20}), (asked, allowance)
    decision = decided(limit, member(), LEAD, *answers)
    assert decision.state.reading.first_times == {(TP, 10): 5_000, (TP1, 20): 9_000}
    assert decision == Decision(decision.state)
