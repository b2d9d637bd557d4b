"""The steps of a member that strike, try, park and leave out lanes (rule: parked-until-released)."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.member.batch import Batch
from coordinator.member.decision import Decision
from coordinator.member.evidence import Evidence
from coordinator.member.poison import (
    leave_out_struck,
    see_strikes,
    strike_after_acquire,
    strike_before_join,
)
from coordinator.member.reading import limit
from coordinator.member.requests import (
    Abandon,
    Forgive,
    Grant,
    OffsetsOfARecord,
    ReadStrikes,
    ReadWorking,
    StrikeMember,
)
from coordinator.member.state import Failing, State, Strikes, Turn
from coordinator.plan.cost.batch_cost import LaneId
from coordinator.plan.cost.steering import Allowance
from coordinator.plan.planning import Cutting, OwnedRange
from coordinator.plan.poison import Strike
from coordinator.progress.ownership import Owned, Ownership
from coordinator.values.ranges import WHOLE, HashRange
from states import (
    EPOCH,
    FRESH,
    LEFT,
    NOW,
    RIGHT,
    TP,
    TP1,
    Answer,
    call,
    decided,
    end_of,
    joined,
    owned,
    owns,
    struck,
)

KNOWN = Strikes((struck(),), NOW)


def test_before_it_joins__strike_members_that_are_lost_in_order_of_their_ids() -> None:
    decision = decided(
        strike_before_join,
        joined(life=FRESH, strikes=KNOWN),
        call(),
        (ReadWorking(), frozenset({"m-3", "m-2"})),
    )
    strikes = StrikeMember("m-2"), StrikeMember("m-3")
    assert decision == Decision(joined(life=FRESH, strikes=Strikes(KNOWN.strikes, None)), strikes)


def test_before_it_joins_and_no_member_is_working__the_strikes_are_as_fresh_as_before() -> None:
    state = joined(life=FRESH, strikes=KNOWN)
    assert decided(strike_before_join, state, call(), (ReadWorking(), frozenset())) == Decision(state)


def test_it_has_joined__strike_no_member() -> None:
    assert decided(strike_before_join, joined(), call()) == Decision(joined())


def test_ranges_were_acquired__strike_their_lost_owners() -> None:
    decision = decided(
        strike_after_acquire,
        joined(turn=Turn(fresh=True, acquired=True)),
        call(),
        (ReadWorking(), frozenset({"m-2"})),
    )
    assert decision == Decision(joined(turn=Turn(fresh=True)), (StrikeMember("m-2"),))


def test_ranges_were_acquired__read_the_failing_records_of_their_earlier_owners() -> None:
    state = joined(turn=Turn(fresh=True, acquired=True), failing=Failing((), NOW))
    decision = decided(strike_after_acquire, state, call(), (ReadWorking(), frozenset()))
    assert decision == Decision(joined(turn=Turn(fresh=True)))


def test_no_range_was_acquired__strike_no_member() -> None:
    assert decided(strike_after_acquire, joined(turn=Turn(fresh=True)), call()) == Decision(
        joined(turn=Turn(fresh=True))
    )


@pytest.mark.parametrize("looked_at_ms", [pytest.param(None, id="never"), pytest.param(NOW - 1_000, id="a second ago")])
def test_strikes_are_old__read_them(looked_at_ms: int | None) -> None:
    state = joined(strikes=Strikes((), looked_at_ms))
    decision = decided(see_strikes, state, call(), (ReadStrikes(), (struck(),)))
    assert decision == Decision(joined(strikes=KNOWN))


def test_strikes_are_fresh__keep_them() -> None:
    state = joined(strikes=Strikes((), NOW - 999))
    assert decided(see_strikes, state, call()) == Decision(state)


def limited(
    state: State,
    work: tuple[OwnedRange, ...],
    trials: tuple[LaneId, ...] = (),
    *answers: Answer,
    anew: Any = ((TP, WHOLE),),
) -> State:
    """The state once this work has been granted."""
    grant = Grant({TP: work}, {TP: 100}, trials, everything=False, anew=anew)
    return decided(limit, state, call(), *answers, (grant, Allowance({TP: work}, (), Cutting(1)))).state


def piece(hashes: HashRange = WHOLE, ceiling: int | None = None) -> OwnedRange:
    """An owned range at position 10, up to a ceiling."""
    return OwnedRange(hashes, 10, EPOCH, ceiling)


def strikes(*of: Strike) -> Strikes:
    return Strikes(of, NOW)


RECORD: Answer = OffsetsOfARecord((TP, LEFT)), 3


def test_a_struck_lane__is_on_trial_beside_all_others() -> None:
    state = owns(strikes=strikes(struck(hashes=LEFT)))
    then = limited(state, (piece(LEFT, 20), piece(RIGHT)), ((TP, LEFT),), RECORD)
    assert then.reading.trials == {(TP, LEFT): 3}


def test_struck_twice__about_one_record_is_read() -> None:
    state = owns(strikes=strikes(struck(hashes=LEFT, count=2)))
    then = limited(state, (piece(LEFT, 13), piece(RIGHT)), ((TP, LEFT),), RECORD)
    assert then.reading.trials == {(TP, LEFT): 3}


def test_the_last_strike_is_removed__nothing_is_on_trial() -> None:
    state = owns(reading=replace(owns().reading, trials={(TP, LEFT): 3}))
    assert limited(state, (piece(),)).reading.trials == {}


def test_a_parked_lane__is_not_read() -> None:
    parked = struck(hashes=LEFT, count=2, parked=True)
    then = limited(owns(strikes=strikes(parked)), (piece(LEFT, 10), piece(RIGHT)))
    assert then.strikes.strikes == (parked,)


def test_a_parked_lane_that_went_back_in_a_reset__is_read_up_to_the_record() -> None:
    limited(owns(strikes=strikes(struck(15, 20, LEFT, count=2, parked=True))), (piece(LEFT, 15), piece(RIGHT)))


def test_strikes_that_were_passed__are_forgiven() -> None:
    passed = struck(5, 10)
    then = limited(owns(strikes=strikes(passed)), (piece(),), (), (Forgive((passed,)), 1))
    assert then.strikes == strikes()


def test_a_strike_of_hashes_that_others_own_too__is_not_ours_to_forgive() -> None:
    passed = struck(5, 10)
    then = limited(owns(10, LEFT, strikes=strikes(passed)), (piece(LEFT),), anew=((TP, LEFT),))
    assert then.strikes == strikes(passed)


BATCH = Batch(end_of(10, 20), granted=owned())


def planned(batch: Batch = BATCH, **changes: Any) -> State:
    return joined(batch=batch, evidence=Evidence(batch.end, None, (batch.end,)), **changes)


@pytest.mark.parametrize(
    "strike",
    [
        pytest.param(struck(10, 20, LEFT), id="one strike: the whole batch is replayed"),
        pytest.param(struck(30, 40, LEFT, count=2), id="of offsets behind the batch"),
        pytest.param(struck(10, 20, LEFT, count=2, tp=TP1), id="of another partition"),
    ],
)
def test_a_strike_that_changes_nothing__read_all_that_is_granted(strike: Strike) -> None:
    decision = decided(leave_out_struck, planned(), call(), (ReadStrikes(), (strike,)))
    assert decision == Decision(planned(replace(BATCH, readable=owned()), strikes=strikes(strike)))


@pytest.mark.parametrize(
    ("strike", "readable", "given_up"),
    [
        pytest.param(struck(10, 20, LEFT, count=2), owned(RIGHT), owned(LEFT), id="struck twice"),
        pytest.param(struck(10, 20, LEFT, parked=True), owned(RIGHT), owned(LEFT), id="parked"),
        pytest.param(struck(10, 20, count=2), {TP: ()}, owned(), id="all of it"),
    ],
)
def test_struck_since_the_plan__abandon_before_anything_is_read(
    strike: Strike, readable: Ownership, given_up: Ownership
) -> None:
    decision = decided(leave_out_struck, planned(), call(), (ReadStrikes(), (strike,)))
    then = planned(replace(BATCH, readable=readable), strikes=strikes(strike))
    assert decision == Decision(then, (Abandon(given_up),))


def test_struck_twice_before_the_plan__the_trial_is_read() -> None:
    twice = struck(10, 20, count=2)
    trial = replace(BATCH, trials={(TP, WHOLE): 1}, strikes=(twice,))
    decision = decided(leave_out_struck, planned(trial), call(), (ReadStrikes(), (twice,)))
    assert decision.state.batch == replace(trial, readable=owned())


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(replace(BATCH, granted=None), id="not authorized yet"),
        pytest.param(replace(BATCH, readable=owned()), id="decided before"),
    ],
)
def test_nothing_to_leave_out__ask_nothing(batch: Batch) -> None:
    assert decided(leave_out_struck, planned(batch), call()) == Decision(planned(batch))


def test_no_batch__ask_nothing() -> None:
    assert decided(leave_out_struck, joined(), call()) == Decision(joined())


def test_part_is_granted__only_that_is_abandoned() -> None:
    batch = replace(BATCH, granted={TP: (Owned(LEFT, EPOCH),)})
    twice = struck(10, 20, count=2)
    state = planned(batch)
    decision = decided(leave_out_struck, state, call(), (ReadStrikes(), (twice,)))
    assert decision.effects == (Abandon(owned(LEFT)),)
