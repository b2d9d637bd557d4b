"""A member ends where another group has the name of its own, and creates none where the mirror may hold one."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from coordinator.errors import KafkaAccessError, StateLostError
from coordinator.member.accepting import accept
from coordinator.member.decision import Decision, LookAgain
from coordinator.member.first_positions import first_positions
from coordinator.member.founding import of_proofs, replaced
from coordinator.member.recovery import recover
from coordinator.member.requests import ReadGroupOffsets, ReadResetEpoch, ReadStatus, Recover
from coordinator.member.state import LogView
from coordinator.progress.mirror import entry, with_founding
from coordinator.redis.replies import Status
from coordinator.values.subscription import TopicPartition
from coordinator.values.verdicts import Absent, Lost, Replaced
from states import FRESH, LIFE, ORDERS, TP, TP1, call, decided, end_of, fails, joined, like, refused

MINE = replace(LIFE, founding="f1")
NEW = joined(life=FRESH, log=LogView({"orders": ORDERS}, (TP,), 100_000))


def mirror(**foundings: str) -> dict[TopicPartition, tuple[int, str]]:
    names = {"p0": TP, "p1": TP1}
    return {names[n]: with_founding(entry(42, 0, "id-1", None), f) for n, f in foundings.items()}


def test_replaced__the_query_ends_and_is_told_both_foundings() -> None:
    decision = decided(replaced, refused(Replaced("f2"), MINE), call())
    assert decision == Decision(joined(life=MINE), (), fails(StateLostError, "its founding is f1, and Redis holds f2"))


def test_not_replaced__go_on() -> None:
    state = refused(Lost("restarted"), MINE)
    assert decided(replaced, state, call()) == Decision(state)


@pytest.mark.parametrize(
    ("mine", "verdict", "offsets", "expected"),
    [
        pytest.param("f1", Absent(), {}, "f1", id="nothing else names one: the process's own"),
        pytest.param("f1", Absent(), mirror(p0="f1"), "f1", id="a mirror of the same"),
        pytest.param("", Absent(), mirror(p0="f1", p1="f1"), "f1", id="a process that knows none takes the mirror's"),
        pytest.param("", Absent(), {}, "", id="nobody knows one"),
        pytest.param("f1", Lost("restarted"), mirror(p0="f2"), "f1", id="Redis has its own, which the script compares"),
    ],
)
def test_of_proofs(mine: str, verdict: Lost, offsets: Mapping[TopicPartition, tuple[int, str]], expected: str) -> None:
    assert of_proofs(joined(life=replace(LIFE, founding=mine)), verdict, offsets, "g") == expected


@pytest.mark.parametrize(
    ("mine", "verdict", "offsets"),
    [
        pytest.param("f1", Absent(), mirror(p0="f2"), id="a mirror of another group"),
        pytest.param("f1", Absent(), mirror(p0="f1", p1="f2"), id="also beside our own"),
        pytest.param("", Absent(), mirror(p0="f1", p1="f2"), id="two groups, and nothing tells which"),
        pytest.param("", Lost("restarted"), mirror(p0="f1", p1="f2"), id="also beside a Redis that has one"),
    ],
)
def test_of_proofs__refuse(mine: str, verdict: Lost, offsets: Mapping[TopicPartition, tuple[int, str]]) -> None:
    with pytest.raises(StateLostError, match="f2"):
        of_proofs(joined(life=replace(LIFE, founding=mine)), verdict, offsets, "g")


def test_a_new_group_whose_mirror_cannot_be_read__refuse() -> None:
    decision = decided(first_positions, NEW, call(), (ReadGroupOffsets(), None), (ReadStatus(), None))
    assert decision == Decision(NEW, (), fails(KafkaAccessError, "grant READ on the group 'g'"))


def test_a_group_in_redis_needs_no_right_to_read_the_mirror() -> None:
    asked = decided(first_positions, NEW, call(), (ReadGroupOffsets(), None), (ReadStatus(), Status(0, {}, "f1")))
    assert asked.effects != ()
    assert not isinstance(asked.outcome, type(fails(KafkaAccessError, "")))


def test_a_recovery_of_nothing_without_the_mirror__refuse() -> None:
    state = refused(Absent("gone"), replace(LIFE, founding=""))
    decision = decided(recover, state, call(), (ReadGroupOffsets(), None))
    assert decision == Decision(state, (), fails(KafkaAccessError, "grant READ"))


def test_a_process_that_knows_its_group_recovers_it_without_the_mirror() -> None:
    state = refused(Absent("gone"), MINE)
    request = Recover("gone", 0, {"orders": ORDERS}, {TP: None}, (), None, "f1")
    decision = decided(recover, state, call(), (ReadGroupOffsets(), None), (ReadResetEpoch(), 0), (request, None))
    assert decision.outcome == LookAgain()


def test_a_group_that_this_process_created_and_that_redis_lost_is_not_created_again() -> None:
    known = replace(NEW, life=replace(FRESH, founding="f1"))
    decision = decided(first_positions, known, call(), (ReadGroupOffsets(), {}), (ReadStatus(), None))
    assert decision.outcome == LookAgain()
    assert decision.state.life.verdict == like(Absent, "Redis holds nothing of this group")


def test_first_positions_of_another_group__replaced() -> None:
    known = replace(NEW, life=replace(FRESH, founding="f1"))
    decision = decided(first_positions, known, call(), (ReadGroupOffsets(), {}), (ReadStatus(), Status(0, {}, "f2")))
    assert decision.state.life.verdict == like(Replaced, "f2")


def test_accept__the_founding_of_the_checkpoint_is_that_of_the_member() -> None:
    state = joined(life=FRESH)
    assert decided(accept, state, call(end_of(founding="f1"))).state.life.founding == "f1"


def test_accept__a_checkpoint_of_another_founding_than_the_process__refuse() -> None:
    state = joined(life=MINE)
    decision = decided(accept, state, call(end_of(founding="f2")))
    assert decision == Decision(state, (), fails(StateLostError, "its founding is f2, and this process has joined f1"))
