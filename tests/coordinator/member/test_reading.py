"""The six limits on owned ranges, and the looks that compute them again."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.member.decision import Call, Decision
from coordinator.member.inbox import Reach
from coordinator.member.kinds import Request
from coordinator.member.limits import Limits
from coordinator.member.reading import limit
from coordinator.member.requests import Grant, ReadHighWatermarks, ReadReach
from coordinator.member.state import Growing, Pacing, Reading, State, Strikes
from coordinator.plan.cost.profile import Cell
from coordinator.plan.cost.quotas import Quota
from coordinator.plan.cost.steering import Allowance
from coordinator.plan.planning import Cutting, OwnedRange
from coordinator.progress.growth import Growth
from coordinator.progress.ownership import Owned
from coordinator.progress.segments import Progress, Segment
from coordinator.redis.replies import Acquired
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import Assigned, Topic
from states import EPOCH, LEFT, NOW, RIGHT, TP, Answer, asks, call, decided, held, joined, owning, owns, struck

ENDS = {TP: 100}
PIECE = OwnedRange(WHOLE, 10, EPOCH)
GRANTED = OwnedRange(WHOLE, 10, EPOCH, 60)
QUOTA = Quota(TP, GRANTED, 100, Cell(WHOLE, 1.0), 0.0)


def grant(*pieces: OwnedRange, ends: Any = None, anew: Any = (), **how: Any) -> Request[Any]:
    return Grant({TP: pieces}, ends or ENDS, anew=anew, **{"everything": False, **how})


def limited(state: State, *pieces: OwnedRange) -> Reading:
    """The result for a state in which the cost model grants these pieces."""
    acquired = state.owning.acquired
    before = (acquired, state.log.bounds, ENDS, state.strikes.strikes, (), state.owning.policy)
    names = ("failing key", "individual commits", "older partitions", "joined topics", "maxLaneLead")
    ceilings = tuple((name, {TP: (PIECE,)}) for name in names)
    return Reading(before, {TP: pieces}, ceilings=ceilings, quotas=(QUOTA,), cutting=Cutting(4), owned={TP: (WHOLE,)})


ALLOWED = Allowance({TP: (GRANTED,)}, (QUOTA,), Cutting(4))


def test_first__the_cost_model_limits_the_batch() -> None:
    decision = decided(limit, owns(), call(), (grant(PIECE, anew=((TP, WHOLE),)), ALLOWED))
    assert decision == Decision(owns(reading=limited(owns(), GRANTED), growing=Growing(graces={})))


def test_nothing_has_changed__compute_nothing() -> None:
    state = owns(reading=limited(owns(), GRANTED))
    assert decided(limit, state, call()) == Decision(state)


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        pytest.param({"owning": owning(held(20))}, grant(OwnedRange(WHOLE, 20, EPOCH)), id="positions"),
        pytest.param({"pace": Pacing({TP: 50})}, grant(PIECE, ends={TP: 50}), id="targets"),
        pytest.param(
            {"owning": owning(held(10, LEFT))},
            grant(OwnedRange(LEFT, 10, EPOCH), anew=()),
            id="fewer ranges",
        ),
    ],
)
def test_something_has_changed__ask_the_cost_model_again(change: dict[str, Any], asked: Request[Any]) -> None:
    state = replace(owns(reading=limited(owns(), GRANTED)), **change)
    assert decided(limit, state, call()) == asks(state, asked)


def test_ranges_that_were_not_ours_at_the_last_look__begin_anew_in_the_cost_model() -> None:
    before = replace(limited(owns(), GRANTED), seen=None, owned={TP: (LEFT,)})
    state = owns(reading=before)
    assert decided(limit, state, call()) == asks(state, grant(PIECE, anew=((TP, RIGHT),)))


def test_trigger_once__everything() -> None:
    state = owns()
    decision = decided(limit, state, call(limits=Limits(everything=True)))
    assert decision == asks(state, grant(PIECE, everything=True, anew=((TP, WHOLE),)))


@pytest.mark.parametrize(("reach", "early"), [(Reach.ALL, True), (Reach.UNKNOWN, False), (Reach.NONE, False)])
def test_tasks_end_by_the_clock__once_all_are_known_to_report_their_ends(reach: Reach, early: bool) -> None:
    state = owns()
    decision = decided(limit, state, call(early_ends=True), (ReadReach(), reach))
    assert decision == asks(state, grant(PIECE, early=early, anew=((TP, WHOLE),)))


def test_there_are_strikes__compute_at_each_look() -> None:
    state = owns(strikes=Strikes((struck(5, 200, parked=True),), NOW))
    looked_at = (state.owning.acquired, state.log.bounds, ENDS, state.strikes.strikes, (), state.owning.policy)
    state = replace(state, reading=replace(limited(owns(), GRANTED), seen=looked_at))
    assert decided(limit, state, call()) == asks(state, grant(OwnedRange(WHOLE, 10, EPOCH, 10)))


def test_a_topic_has_grown__compute_at_each_look() -> None:
    growth = Growth("orders", "id-1", 1, 2, 5, NOW + 1)
    state = replace(owns(reading=limited(owns(), GRANTED)), owning=owning(held(10), growths=(growth,)))
    assert decided(limit, state, call()) == asks(state, ReadHighWatermarks((TP,)))


AHEAD = Progress((Segment(LEFT, 10), Segment(RIGHT, 30, (OffsetRange(40, 50), OffsetRange(60, 70)))))
FULL = Acquired(0, {"orders": "id-1"}, {TP: (Owned(LEFT, EPOCH), Owned(RIGHT, EPOCH))}, {TP: AHEAD}, {TP: AHEAD})


def full(**changes: Any) -> State:
    """The partition holds two individual commits, in the range that is ahead."""
    ranges = {TP: (WHOLE,)}
    return joined(owning=owning(FULL, ranges=ranges), **changes)


def test_all_the_individual_commits_it_may_hold__ranges_ahead_fill_gaps_only_and_acquire_again() -> None:
    ahead = OwnedRange(RIGHT, 30, EPOCH, 60, (OffsetRange(40, 50), OffsetRange(60, 70)))
    asked = grant(OwnedRange(LEFT, 10, EPOCH), ahead, anew=((TP, WHOLE),))
    answer: Answer = asked, ALLOWED
    decision = decided(limit, full(), call(max_individual_commits=2), answer)
    assert decision.state.owning == owning(FULL, ranges={TP: (WHOLE,)}, stale=True)
    assert decision.state.reading.seen is None


def pinned_to(*hashes: HashRange) -> Call:
    return call(max_individual_commits=2, subscription=Assigned({TP: hashes}, pinned=True))


def test_pinned__hashes_of_others_count_for_nothing() -> None:
    """They are behind, and may have no reader: no assignment ever moves them."""
    mine = Progress((AHEAD.segments[1],))
    alone = Acquired(0, {"orders": "id-1"}, {TP: (Owned(RIGHT, EPOCH),)}, {TP: mine}, {TP: AHEAD})
    work = OwnedRange(RIGHT, 30, EPOCH, None, (OffsetRange(40, 50), OffsetRange(60, 70)))
    state = joined(owning=owning(alone, ranges={TP: (RIGHT,)}))
    asked = grant(work, anew=((TP, RIGHT),))
    assert decided(limit, state, pinned_to(RIGHT)) == asks(state, asked)


def test_pinned__its_own_hashes_ahead_of_others_fill_gaps_only() -> None:
    ahead = OwnedRange(RIGHT, 30, EPOCH, 60, (OffsetRange(40, 50), OffsetRange(60, 70)))
    asked = grant(OwnedRange(LEFT, 10, EPOCH), ahead, anew=((TP, WHOLE),))
    assert decided(limit, full(), pinned_to(LEFT, RIGHT)).effects == (asked,)


def test_fewer_individual_commits_than_it_may_hold__no_ceiling() -> None:
    ahead = OwnedRange(RIGHT, 30, EPOCH, None, (OffsetRange(40, 50), OffsetRange(60, 70)))
    asked = grant(OwnedRange(LEFT, 10, EPOCH), ahead, anew=((TP, WHOLE),))
    assert decided(limit, full(), call(max_individual_commits=3)) == asks(full(), asked)


PAYMENTS = Topic("payments", "id-2", (0,))


def test_a_joined_topic_is_not_owned_yet__its_partner_is_not_read() -> None:
    state, of = owns(), call(cutting=Cutting(1, joined=("orders", "payments")))
    both = replace(state, log=replace(state.log, topics={**state.log.topics, "payments": PAYMENTS}))
    anew = ((TP, WHOLE),)
    assert decided(limit, both, of) == asks(both, grant(PIECE._replace(ceiling=0), anew=anew))
    assert decided(limit, state, of) == asks(state, grant(PIECE, anew=anew)), "this query reads only one of them"
