"""When a member asks Redis to forget topics without subscribers."""

from dataclasses import replace

import pytest

from coordinator.member.decision import Call, Decision, Seen
from coordinator.member.first_positions import place
from coordinator.member.owning import forget_topics
from coordinator.member.requests import (
    CreatePositions,
    DeleteMirror,
    ForgetTopics,
    ReadGroupOffsets,
    ReadResetEpoch,
    ReadStable,
    ResolveOffsets,
)
from coordinator.member.state import Mirrored, State
from coordinator.values.offset_spec import Earliest
from coordinator.values.subscription import TopicPartition
from states import NOW, ORDERS, TP, Answer, call, decided, held, joined, owning

OTHER = TopicPartition("payments", 0)
ASK = ForgetTopics(("payments",))


def group_of(*topics: str, forgot_ms: int | None = None, mirrored: bool = True) -> State:
    """A member that reads orders, in a group that has these topics."""
    acquired = replace(held(), topic_ids=dict.fromkeys(topics, "id-1"))
    return joined(owning=owning(acquired, forgot_ms=forgot_ms), mirrored=Mirrored(allowed=mirrored))


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(group_of("orders"), id="the group has no other topic"),
        pytest.param(group_of("orders", "payments", forgot_ms=NOW - 9_999), id="it has asked just now"),
    ],
)
def test_not_due__do_nothing(state: State) -> None:
    assert decided(forget_topics, state, call()) == Decision(state)


@pytest.mark.parametrize("forgot_ms", [None, NOW - 10_000])
def test_another_topic_and_ten_seconds__ask(forgot_ms: int | None) -> None:
    state = group_of("orders", "payments", forgot_ms=forgot_ms)
    decision = decided(forget_topics, state, call(), (ASK, ()))
    assert decision == Decision(group_of("orders", "payments", forgot_ms=NOW))


def test_redis_has_forgotten_it__delete_its_mirror() -> None:
    state = group_of("orders", "payments")
    decision = decided(forget_topics, state, call(), (ASK, (OTHER,)))
    assert decision == Decision(group_of("orders", "payments", forgot_ms=NOW), (DeleteMirror((OTHER,)),))


def test_plain_consumers_live_in_kafkas_group__leave_their_offsets() -> None:
    state = group_of("orders", "payments", mirrored=False)
    decision = decided(forget_topics, state, call(), (ASK, (OTHER,)))
    assert decision == Decision(group_of("orders", "payments", forgot_ms=NOW, mirrored=False))


def test_the_group_has_forgotten_a_topic_of_this_member_that_slept__place_it_again() -> None:
    def placed(state: State, seen: Seen, call: Call) -> Decision:
        return Decision(place(state, seen, call))

    state = group_of("payments")
    answers: tuple[Answer, ...] = (
        (ReadStable(("orders",)), {}),
        (ReadResetEpoch(), 0),
        (ReadGroupOffsets(), {}),
        (ResolveOffsets(Earliest(), (TP,)), {TP: 3}),
        (CreatePositions({"orders": ORDERS}, {TP: 3}, call().setup.settings.growth_grace_ms, create=False), ""),
    )
    assert decided(placed, state, call(), *answers) == Decision(state)
