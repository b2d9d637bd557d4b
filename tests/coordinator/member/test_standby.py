"""The role of a member that wants to be a standby: what it joins as, and what a look tells it."""

from dataclasses import replace

import pytest

from coordinator.member.decision import Decision, LookAgain
from coordinator.member.kinds import Request
from coordinator.member.life import joining
from coordinator.member.owning import follow
from coordinator.member.requests import LogLine, LookAtGroup, ReadSubscribers
from coordinator.member.state import Life
from coordinator.redis.group_state import STANDBY, WORKING
from states import LIFE, call, decided, joined, look, owning

STANDS_BY, WORKS = replace(LIFE, role=STANDBY), replace(LIFE, role=WORKING)
TAKES_OVER = LogLine("group g: member m-1 works from now on: too few other members do")
WAITS = LogLine("group g: member m-1 is a standby: it reads nothing, and takes over when a working member is lost")

DRAINED = LogLine(
    "group g: member m-1 was drained, as ordered: other members get its ranges, and its query may be stopped", info=True
)


@pytest.mark.parametrize(
    ("wants", "life", "role"),
    [
        pytest.param(True, LIFE, STANDBY, id="before its first look"),
        pytest.param(True, STANDS_BY, STANDBY, id="a standby again"),
        pytest.param(True, WORKS, WORKING, id="a standby that took over, after a loss of state"),
        pytest.param(False, LIFE, "", id="an ordinary member"),
    ],
)
def test_the_role_that_a_member_joins_with(wants: bool, life: Life, role: str) -> None:
    state = joined(life=life)
    assert joining(state, call(standby=wants)).role == role


@pytest.mark.parametrize(
    ("before", "seen", "after", "lines"),
    [
        pytest.param(LIFE, STANDBY, STANDS_BY, (WAITS,), id="nothing to standby"),
        pytest.param(STANDS_BY, STANDBY, STANDS_BY, (), id="standby to standby"),
        pytest.param(STANDS_BY, WORKING, WORKS, (TAKES_OVER,), id="standby to working"),
        pytest.param(WORKS, STANDBY, STANDS_BY, (WAITS,), id="working to standby"),
        pytest.param(WORKS, "\x1b", WORKS, (), id="a damaged role"),
        pytest.param(LIFE, "", LIFE, (), id="an ordinary member"),
    ],
)
def test_what_a_look_changes(before: Life, seen: str, after: Life, lines: tuple[Request[bool], ...]) -> None:
    known = owning()
    answers = (LookAtGroup(), look(role=seen))
    assert decided(follow, joined(life=before, owning=known), call(standby=True), answers) == Decision(
        joined(life=after, owning=replace(known, looked_at_ms=look().now_ms, topics_at_ms=look().now_ms)), lines
    )


@pytest.mark.parametrize(
    ("wants", "after"), [pytest.param(False, LIFE, id="drained before"), pytest.param(True, STANDS_BY, id="a standby")]
)
def test_only_a_member_that_was_drained_loses_its_role(wants: bool, after: Life) -> None:
    decision = decided(follow, joined(life=STANDS_BY, owning=owning()), call(standby=wants), (LookAtGroup(), look()))
    assert (decision.state.life, decision.effects) == (after, ())


def test_a_drain_is_no_warning() -> None:
    decision = decided(follow, joined(owning=owning()), call(standby=False), (LookAtGroup(), look(role=STANDBY)))
    assert (decision.state.life, decision.effects) == (STANDS_BY, (DRAINED,))


def test_a_takeover_is_logged_once_although_the_member_looks_again_after_its_assignment() -> None:
    answer = (LookAtGroup(), look(role=WORKING, occasion="of m-1", members=()))
    gone = (ReadSubscribers(()), ())
    decision = decided(follow, joined(life=STANDS_BY, owning=owning()), call(standby=True), answer, gone)
    assert (decision.state.life, decision.effects, decision.outcome) == (WORKS, (TAKES_OVER,), LookAgain())
