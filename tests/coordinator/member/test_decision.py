"""Results of a step: a decision, a request, or a named error."""

from dataclasses import replace

import pytest

from coordinator.errors import DataLossError
from coordinator.member.decision import Call, Decision, NotSeen, Return, Seen, decide
from coordinator.member.requests import ReadGrowths, ReadStable, ReadStatus, ReadStrikes, ReadTopics
from coordinator.member.state import State, Turn
from states import NOW, ORDERS, asks, call, fails, joined

CHANGED = replace(joined(), turn=Turn(learned=True))


def test_all_is_seen__the_decision_of_the_step() -> None:
    def step(state: State, seen: Seen, call: Call) -> Decision:
        return Decision(CHANGED, (), Return(seen.of(ReadTopics())))

    seen = Seen(NOW).with_answer(ReadTopics(), {"orders": ORDERS})
    assert decide(step, joined(), seen, call()) == Decision(CHANGED, (), Return({"orders": ORDERS}))


def test_an_answer_is_missing__ask_for_it_and_change_nothing() -> None:
    def step(state: State, seen: Seen, call: Call) -> Decision:
        state = replace(state, turn=Turn(learned=True))
        return Decision(state, (), Return(seen.of(ReadTopics())))

    assert decide(step, joined(), Seen(NOW), call()) == asks(joined(), ReadTopics())


def test_a_named_error__the_call_fails_and_nothing_changes() -> None:
    def step(state: State, seen: Seen, call: Call) -> Decision:
        raise DataLossError("records are gone")

    assert decide(step, joined(), Seen(NOW), call()) == Decision(joined(), (), fails(DataLossError, "records are gone"))


def test_an_error_of_ours__is_not_hidden() -> None:
    def step(state: State, seen: Seen, call: Call) -> Decision:
        raise KeyError("orders")

    with pytest.raises(KeyError):
        decide(step, joined(), Seen(NOW), call())


def test_an_answer_to_another_request__is_no_answer() -> None:
    seen = Seen(NOW).with_answer(ReadStable(("other",)), {}).with_answer(ReadGrowths(), ())
    assert seen.of(ReadGrowths()) == ()
    for request in (ReadStable(("orders",)), ReadStrikes()):
        with pytest.raises(NotSeen):
            seen.of(request)


def test_an_answer_that_is_nothing__is_an_answer() -> None:
    assert Seen(NOW).with_answer(ReadStatus(), None).of(ReadStatus()) is None
