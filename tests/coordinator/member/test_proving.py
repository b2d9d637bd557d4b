"""Proofs of positions: own facts and the mirror, each as far as the log still has the records below it."""

from dataclasses import replace

import pytest

from coordinator.errors import DataLossError
from coordinator.member.decision import RETRY_MS, Decision, LookAgain
from coordinator.member.evidence import Evidence
from coordinator.member.first_positions import place, prove
from coordinator.member.recovery import recover
from coordinator.member.requests import (
    Claim,
    CreatePositions,
    LogLine,
    ReadGroupOffsets,
    ReadLeftOfEpochs,
    ReadLogEnds,
    ReadOtherTopics,
    ReadResetEpoch,
    ReadStable,
    Recover,
)
from coordinator.member.state import Owning, State
from coordinator.progress.leader_epochs import Extent
from coordinator.progress.mirror import entry
from coordinator.progress.ownership import Fact
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Bounds, Topic, TopicPartition
from coordinator.values.verdicts import Absent, Lost, Recovering
from states import LEFT, LIFE, ORDERS, TP, Answer, call, decided, end_of, fails, joined, like, owned, refused

OTHER, BILLS = TopicPartition("bills", 0), Topic("bills", "id-7", (0, 1))
READ = Evidence(end_of(10, 20), owned())
SERVICE = call().setup.settings
HALF = Evidence(end_of(10, 20, LEFT), owned(LEFT))
GONE, RESTARTED = Absent("gone"), Lost("restarted")
ANY_LOSS = call(fail_on_data_loss=False)


def placed(state: State, *answers: Answer, **settings: object) -> object:
    """What `place` makes of a partition that Redis does not know."""

    def step(state: State, seen: object, of: object) -> Decision:
        return Decision(place(state, seen, of))  # type: ignore[arg-type]

    known: tuple[Answer, ...] = (ReadStable(("orders",)), {}), (ReadResetEpoch(), 0)
    return decided(step, state, call(**settings), *known, *answers)  # type: ignore[arg-type]


BEGINNING: Answer = ReadLogEnds((TP,)), {TP: Bounds(0, 9)}


def created(position: int) -> Answer:
    return CreatePositions({"orders": ORDERS}, {TP: position}, SERVICE.growth_grace_ms), ""


def test_a_partition_that_redis_does_not_know_and_this_process_has_read__its_proof() -> None:
    state = joined(evidence=READ, owning=Owning())
    claim = Claim(READ.known, READ.facts)
    decision = placed(state, (ReadGroupOffsets(), {}), created(20), (claim, None))
    assert isinstance(decision, Decision)
    assert decision.state.owning.placed == {TP}


def test_a_partition_that_redis_does_not_know_and_the_mirror_has__its_offset() -> None:
    placed(joined(owning=Owning()), (ReadGroupOffsets(), {TP: entry(42, 0, "id-1", None)}), created(42))


def test_a_partition_that_nobody_has_read__the_beginning_of_its_log() -> None:
    placed(joined(owning=Owning()), (ReadGroupOffsets(), None), BEGINNING, created(0))


def test_a_partition_of_which_this_process_proves_a_part_only__a_loss() -> None:
    state = joined(evidence=HALF, owning=Owning())
    decision = placed(state, (ReadGroupOffsets(), {}))
    assert isinstance(decision, Decision)
    assert decision.state.life.verdict == like(Lost, "Redis does not know the position of orders-0, which this query")
    assert decision.state.owning.placed == frozenset()


def test_proofs_of_others_are_missing__wait_and_recover_again() -> None:
    state = refused(GONE, LIFE, evidence=HALF)
    request = Recover("gone", 0, {"orders": ORDERS}, {TP: HALF.facts[TP]}, ())
    answers: tuple[Answer, ...] = (ReadGroupOffsets(), {}), (ReadResetEpoch(), 0), (request, True)
    assert decided(recover, state, call(), *answers) == Decision(state, (), LookAgain(RETRY_MS))


def test_a_part_only_and_on_state_loss_is_earliest__the_beginning_of_its_log() -> None:
    placed(
        joined(evidence=HALF, owning=Owning()),
        (ReadGroupOffsets(), {}),
        BEGINNING,
        created(0),
        on_state_loss="earliest",
    )


def test_a_fact_of_an_older_reset_proves_nothing() -> None:
    known = replace(READ, known=replace(READ.known, reset=-1))
    placed(joined(evidence=known, owning=Owning()), (ReadGroupOffsets(), {}), BEGINNING, created(0))


def test_prove__while_the_group_recovers_a_proven_partition_is_created_at_once() -> None:
    state = refused(Recovering(), replace(LIFE, asserted_at=None), evidence=READ)
    answers: tuple[Answer, ...] = (ReadStable(("orders",)), {}), (ReadResetEpoch(), 0), (ReadGroupOffsets(), {})
    assert decided(prove, state, call(), *answers) == Decision(state, (created(20)[0],))


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(joined(evidence=READ), id="no recovery"),
        pytest.param(refused(Recovering(), replace(LIFE, asserted_at="n-1"), evidence=READ), id="done already"),
        pytest.param(refused(Recovering(), replace(LIFE, asserted_at=None)), id="nothing was read"),
    ],
)
def test_prove__nothing_to_do(state: State) -> None:
    assert decided(prove, state, call()) == Decision(state)


def lost(verdict: Lost) -> State:
    return refused(verdict, LIFE)


def test_a_recovery_uses_topics_of_the_mirror_that_this_member_does_not_read() -> None:
    mirror = {TP: entry(15, 0, "id-1", None), OTHER: entry(7, 0, "id-7", None)}
    bills = replace(BILLS, partitions=(0,))  # the other one is new: it grows once a reader of the topic places it
    request = Recover("gone", 0, {"bills": bills, "orders": ORDERS}, {OTHER: 7, TP: 15}, ())
    answers = (ReadGroupOffsets(), mirror), (ReadOtherTopics(("bills",)), {"bills": BILLS}), (ReadResetEpoch(), 0)
    assert decided(recover, lost(GONE), call(), *answers, (request, None)).outcome == LookAgain()


def test_a_mirror_of_a_topic_that_was_created_again_proves_nothing_of_the_new_one() -> None:
    mirror = {TP: entry(15, 0, "id-1", None), OTHER: entry(7, 0, "id-6", None)}
    request = Recover("gone", 0, {"orders": ORDERS}, {TP: 15}, ())
    answers = (ReadGroupOffsets(), mirror), (ReadOtherTopics(("bills",)), {"bills": BILLS}), (ReadResetEpoch(), 0)
    assert decided(recover, lost(GONE), call(), *answers, (request, None)).outcome == LookAgain()


CUT = {TP: Extent(5, 60)}
MIRROR = ReadGroupOffsets(), {TP: entry(100, 0, "id-1", Extent(4, 100))}
ASKED = MIRROR, (ReadResetEpoch(), 0), (ReadLeftOfEpochs({TP: 4}), CUT)


@pytest.mark.parametrize(
    ("verdict", "of"),
    [
        pytest.param(RESTARTED, call(), id="Redis has positions, and compares its own leader epoch"),
        pytest.param(GONE, ANY_LOSS, id="data loss is accepted"),
    ],
)
def test_the_mirror_of_a_log_that_was_cut__counts_up_to_the_cut(verdict: Lost, of: object) -> None:
    request = Recover(str(verdict), 0, {"orders": ORDERS}, {TP: 60}, ())
    decision = decided(recover, lost(verdict), of, *ASKED, (request, None))  # type: ignore[arg-type]
    assert any(isinstance(e.arguments.get("text"), str) and "60-99" in e.arguments["text"] for e in decision.effects)
    assert decision.state.mirrored.extents == {}


def test_only_the_mirror_is_left_of_a_log_that_was_cut__data_loss() -> None:
    assert decided(recover, lost(GONE), call(), *ASKED) == Decision(lost(GONE), (), fails(DataLossError, "60-99"))


def test_the_mirror_of_a_log_that_was_not_cut__counts_whole() -> None:
    answers = MIRROR, (ReadResetEpoch(), 0), (ReadLeftOfEpochs({TP: 4}), {TP: Extent(5, 100)})
    extents = {TP: ("4@100 reset=0 topic=id-1", (Fact(WHOLE, 100),))}
    request = Recover("gone", 0, {"orders": ORDERS}, {TP: 100}, (), extents=extents)
    lines = decided(recover, lost(GONE), call(), *answers, (request, None)).effects
    assert lines == (LogLine("group g: gone; positions are recovered from their proofs"),)
