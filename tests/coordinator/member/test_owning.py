"""Ownership of a member: it follows the assignment, one range at a time."""

from dataclasses import replace
from typing import Any

from coordinator.member.decision import Decision, LookAgain
from coordinator.member.owning import follow, report_topics
from coordinator.member.requests import (
    Acquire,
    LookAtGroup,
    Notify,
    ReadTopics,
    RecordGrowths,
    Release,
)
from coordinator.member.state import Owning, State, Turn
from coordinator.progress.growth import Growth
from coordinator.values.ranges import WHOLE
from states import (
    LEFT,
    LIFE,
    LOG,
    NEXT_EPOCH,
    NONCE,
    NOW,
    ORDERS,
    RIGHT,
    TP,
    TP1,
    asks,
    call,
    decided,
    end_of,
    held,
    joined,
    look,
    owned,
    owning,
)

ACQUIRED = Turn(fresh=True, acquired=True)
NOTHING_YET = Owning(placed=frozenset({TP}), placed_at=NONCE)


def looked(known: Owning, **changes: Any) -> Owning:
    """The same once it has looked at the group."""
    return replace(known, looked_at_ms=NOW, topics_at_ms=NOW, **changes)


def test_the_same_topics__go_on() -> None:
    state = joined(owning=Owning(topics=frozenset({"orders"})))
    assert decided(report_topics, state, call()) == Decision(state)


def test_a_pattern_means_other_topics__join_again() -> None:
    decision = decided(report_topics, joined(owning=Owning(topics=frozenset({"old"}))), call())
    then = joined(life=LIFE.rejoining(), owning=Owning(topics=frozenset({"old"})))
    assert decision == Decision(then, (), LookAgain())


def test_nothing_owned_yet__acquire_the_assigned_ranges() -> None:
    decision = decided(
        follow,
        joined(owning=NOTHING_YET),
        call(),
        (LookAtGroup(), look()),
        (Acquire({TP: (WHOLE,)}), held(10)),
    )
    then = joined(owning=looked(owning(held(10))), turn=ACQUIRED)
    assert decision == Decision(then, (Notify({}, {}, {TP: (WHOLE,)}),))


def test_all_is_as_it_was__one_look_and_nothing_more() -> None:
    decision = decided(follow, joined(owning=owning()), call(), (LookAtGroup(), look()))
    assert decision == Decision(joined(owning=looked(owning())))


def test_the_topics_were_read_before_an_outage__they_are_as_old_as_that() -> None:
    state = joined(owning=owning(), log=replace(LOG, asked_ms=NOW - 50_000))
    decision = decided(follow, state, call(), (LookAtGroup(), look()))
    assert decision.state.owning.topics_at_ms == NOW - 50_000


def test_stale_ranges__acquire_again() -> None:
    state = joined(owning=owning(held(10), stale=True))
    decision = decided(follow, state, call(), (LookAtGroup(), look()), (Acquire({TP: (WHOLE,)}), held(20)))
    assert decision == Decision(joined(owning=looked(owning(held(20))), turn=ACQUIRED))


def test_another_generation__acquire_again() -> None:
    decision = decided(
        follow,
        joined(owning=owning()),
        call(),
        (LookAtGroup(), look(generation=2)),
        (Acquire({TP: (WHOLE,)}), held(10)),
    )
    assert decision == Decision(joined(owning=looked(owning(), as_of=(NONCE, 2)), turn=ACQUIRED))


def test_another_nonce__acquire_again() -> None:
    state = joined(owning=owning(as_of=("n-0", 1)))
    decision = decided(follow, state, call(), (LookAtGroup(), look()))
    assert decision == asks(state, Acquire({TP: (WHOLE,)}))


def test_less_is_free_than_assigned__try_again_at_the_next_look() -> None:
    state = joined(owning=owning(held(10, LEFT)))
    decision = decided(follow, state, call(), (LookAtGroup(), look()), (Acquire({TP: (WHOLE,)}), held(10, LEFT)))
    assert decision == Decision(joined(owning=looked(owning(held(10, LEFT)), lacking=True), turn=ACQUIRED))


SURPLUS = look({TP: (LEFT,)}, generation=2)


def test_surplus_that_a_working_member_takes__release() -> None:
    decision = decided(
        follow,
        joined(owning=owning()),
        call(),
        (LookAtGroup(), SURPLUS),
        (Acquire({TP: (LEFT,)}), held(10)),
        (Release({TP: (RIGHT,)}), 1),
        (Acquire({TP: (LEFT,)}, again=True), held(10, LEFT)),
    )
    then = joined(owning=looked(owning(held(10, LEFT)), as_of=(NONCE, 2)), turn=ACQUIRED)
    assert decision == Decision(then, (Notify({TP: (RIGHT,)}, {}, {}),))


def test_surplus_without_a_member_to_take_it__keep_it() -> None:
    decision = decided(
        follow,
        joined(owning=owning()),
        call(),
        (LookAtGroup(), SURPLUS),
        (Acquire({TP: (LEFT,)}), held(10)),
        (Release({TP: (RIGHT,)}), 0),
    )
    assert decision == Decision(joined(owning=looked(owning(held(10)), as_of=(NONCE, 2)), turn=ACQUIRED))


def test_another_owned_the_range_in_between__lost_and_assigned() -> None:
    decision = decided(
        follow,
        joined(owning=owning(held(10), stale=True)),
        call(),
        (LookAtGroup(), look()),
        (Acquire({TP: (WHOLE,)}), held(30, epoch=NEXT_EPOCH)),
    )
    assert decision.effects == (Notify({}, {TP: (WHOLE,)}, {TP: (WHOLE,)}),)
    assert decision.state.owning.acquired.ownership == owned(epoch=NEXT_EPOCH)


def test_ranges_move_after_a_batch__say_once_that_the_state_of_spark_does_not() -> None:
    """Rule: one-application."""
    query = call(offset=end_of())
    answers = (
        (LookAtGroup(), SURPLUS),
        (Acquire({TP: (LEFT,)}), held(10)),
        (Release({TP: (RIGHT,)}), 1),
        (Acquire({TP: (LEFT,)}, again=True), held(10, LEFT)),
    )
    decision = decided(follow, joined(owning=owning()), query, *answers)
    *_, line = decision.effects
    assert "set sharing=never" in str(line)
    assert decision.state.owning.moved
    again = decided(follow, joined(owning=owning(moved=True)), query, *answers)
    assert line not in again.effects


MORE = look({TP: (WHOLE,), TP1: (WHOLE,)})


def test_a_partition_that_kafka_does_not_know_yet__is_left_out_and_not_asked_for_again() -> None:
    answers = (LookAtGroup(), MORE), (ReadTopics(anew=True), {"orders": ORDERS})
    decision = decided(follow, joined(owning=owning()), call(), *answers)
    then = joined(log=replace(LOG, beginnings=None), owning=looked(owning(), asked_for=frozenset({TP1}), lacking=True))
    assert decision == Decision(then)
    again = decided(follow, then, call(), (LookAtGroup(), MORE))
    assert again == Decision(then)


GROWTH = Growth("orders", "id-1", 1, 2, 5, 600_005)


def test_growths_and_targets_of_the_group__are_remembered() -> None:
    found = look(growths=(GROWTH,), targets={TP: 70})
    decision = decided(follow, joined(owning=owning()), call(), (LookAtGroup(), found))
    assert decision == Decision(joined(owning=looked(owning(), growths=(GROWTH,), targets={TP: 70})))


def test_growths_that_redis_has_lost__are_recorded_again() -> None:
    decision = decided(
        follow,
        joined(owning=owning(growths=(GROWTH,))),
        call(),
        (LookAtGroup(), look()),
        (RecordGrowths((GROWTH,)), None),
    )
    assert decision == Decision(joined(owning=looked(owning(), growths=(GROWTH,))))


def test_a_growth_that_redis_holds_with_its_ends__replaces_ours() -> None:
    ended = replace(GROWTH, ends=(50,))
    state: State = joined(owning=owning(growths=(GROWTH,)))
    decision = decided(follow, state, call(), (LookAtGroup(), look(growths=(ended,))))
    assert decision.state.owning.growths == (ended,)
