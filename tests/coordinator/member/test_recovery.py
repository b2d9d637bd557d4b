"""Recovery after a loss of state, and the proofs of positions."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import starmap
from typing import Any

import pytest

from coordinator.member.batch import Batch
from coordinator.member.decision import Decision, LookAgain
from coordinator.member.evidence import Evidence
from coordinator.member.kinds import Request
from coordinator.member.recovery import recover
from coordinator.member.requests import (
    LogLine,
    ReadGroupOffsets,
    ReadLeftOfEpochs,
    ReadRedisTime,
    ReadResetEpoch,
    Recover,
    ResolveOffsets,
)
from coordinator.member.state import LogView, Mirrored, Owning, State
from coordinator.progress.growth import Growth
from coordinator.progress.leader_epochs import Extent
from coordinator.progress.mirror import GroupOffsets, entry
from coordinator.progress.ownership import Fact
from coordinator.redis.replies import Proof
from coordinator.values.offset_spec import Earliest
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import Assigned
from coordinator.values.verdicts import Absent, Lost
from states import (
    GROWN,
    GROWN_LOG,
    LEFT,
    LIFE,
    LOG,
    NOW,
    ORDERS,
    RECREATED,
    RIGHT,
    TP,
    TP1,
    Answer,
    asks,
    call,
    decided,
    end_of,
    joined,
    owned,
    owning,
    refused,
)

LOST = Lost("the run id of Redis has changed")
WHY = LogLine("group g: the run id of Redis has changed; positions are recovered from their proofs")
READ = Evidence(end_of(10, 20), owned())


def lost(**changes: Any) -> State:
    return refused(LOST, **changes)


def under(epoch: int, end: int, proven: Mapping[HashRange, int] | None = None) -> tuple[str, tuple[Fact, ...]]:
    """The extent of a proof, and what it proves: as a rule, its end for all hashes."""
    return Extent(epoch, end).text(0, "id-1"), tuple(starmap(Fact, (proven or {WHOLE: end}).items()))


def recovered(mirror: GroupOffsets, state: State, reset: int = 0, **settings: Any) -> Request[Any]:
    """The recovery with this mirror, if Redis holds this reset epoch."""
    decision = decided(recover, state, call(**settings), (ReadGroupOffsets(), mirror), (ReadResetEpoch(), reset))
    (request,) = decision.effects
    assert request.kind is Recover
    return request


def test_lost__recover_at_the_proven_positions_and_join_again() -> None:
    state = lost(evidence=READ, owning=owning())
    decision = decided(
        recover,
        state,
        call(),
        (ReadGroupOffsets(), {TP: entry(15, 0, "id-1", Extent(3, 15))}),
        (ReadResetEpoch(), 0),
        (ReadLeftOfEpochs({TP: 3}), {}),
        (Recover(str(LOST), 0, {"orders": ORDERS}, {TP: 20}, (), extents={TP: under(3, 15)}), None),
    )
    then = joined(
        life=LIFE.rejoining(),
        evidence=READ,
        owning=owning(placed=frozenset()),
        mirrored=Mirrored(extents={TP: Extent(3, 15)}),
    )
    assert decision == Decision(then, (WHY,), LookAgain())


@pytest.mark.parametrize(
    ("mirror", "hashes", "extent", "proven"),
    [
        pytest.param(None, WHOLE, (4, 20), {WHOLE: 20}, id="this process alone"),
        pytest.param(Extent(3, 15), WHOLE, (4, 20), {WHOLE: 20}, id="it knows a newer leader epoch than the mirror"),
        pytest.param(Extent(4, 15), LEFT, (4, 20), {LEFT: 20, RIGHT: 15}, id="both know the same"),
        pytest.param(Extent(4, 15), WHOLE, (4, 20), {WHOLE: 20}, id="both, of the same hashes"),
        pytest.param(Extent(4, 25), LEFT, (4, 25), {LEFT: 25, RIGHT: 25}, id="the mirror is further in it"),
        pytest.param(Extent(3, 15), LEFT, (4, 20), {LEFT: 20}, id="an older one proves nothing of other hashes"),
        pytest.param(Extent(5, 15), LEFT, (5, 15), {WHOLE: 15}, id="the mirror knows a newer one"),
    ],
)
def test_lost__the_newest_leader_epoch_of_the_proofs_goes_with_them(
    mirror: Extent | None, hashes: HashRange, extent: tuple[int, int], proven: dict[HashRange, int]
) -> None:
    """Rule: leader-epoch-facts. A leader that is silent now may be another one later."""
    known = Evidence(end_of(10, 20, hashes, leader_epochs={TP: 4}), owned(hashes))
    (request,) = decided(
        recover,
        lost(evidence=known, owning=owning()),
        call(),
        (ReadGroupOffsets(), {TP: entry(mirror.end, 0, "id-1", mirror)} if mirror else {}),
        (ReadResetEpoch(), 0),
        *((ReadLeftOfEpochs({TP: epoch}), {}) for epoch in {4, mirror.epoch if mirror else 4}),
    ).effects
    assert request.arguments["extents"] == {TP: under(*extent, proven)}


def test_lost__recover_the_partitions_that_other_members_read_too() -> None:
    """Their members assert positions before they plan: that needs positions. Else they begin at earliest."""
    mirror = {TP: entry(15, 0, "id-1", None), TP1: entry(500, 0, "id-1", None)}
    assert recovered(mirror, lost(evidence=READ)).arguments["proven"] == {TP: 20, TP1: 500}


def test_absent__recover_too() -> None:
    state = refused(Absent())
    assert decided(recover, state, call()) == asks(state, ReadGroupOffsets())


@pytest.mark.parametrize(
    ("mirror", "evidence", "position"),
    [
        pytest.param({}, Evidence(), None, id="nothing"),
        pytest.param({TP: entry(15, 0, "id-1", None)}, Evidence(), 15, id="the mirror"),
        pytest.param({}, READ, 20, id="an offset that this process read to its end"),
        pytest.param({}, Evidence(end_of(10, 20)), 10, id="an offset that another life read"),
        pytest.param({TP: entry(15, 0, "id-1", None)}, Evidence(end_of(10, 20)), 15, id="the higher one"),
        pytest.param({TP: entry(15, 0, "id-0", None)}, Evidence(), None, id="a mirror of another topic id"),
        pytest.param({TP: (15, "of a plain consumer")}, Evidence(), None, id="not a mirror"),
        pytest.param({}, Evidence(end_of(10, 20, LEFT)), (Fact(LEFT, 10),), id="in part: an offset of some hashes"),
        pytest.param({}, Evidence(end_of(topic_ids={"orders": "id-0"})), None, id="an offset of another topic id"),
    ],
)
def test_lost__a_position_is_proven_by(mirror: GroupOffsets, evidence: Evidence, position: Proof) -> None:
    assert recovered(mirror, lost(evidence=evidence)).arguments["proven"] == {TP: position}


@pytest.mark.parametrize(
    ("in_redis", "in_mirror", "in_offset", "then"),
    [
        pytest.param(2, 0, 0, (2, None), id="Redis knows the latest reset"),
        pytest.param(0, 2, 0, (2, 15), id="the mirror does"),
        pytest.param(0, 0, 2, (2, 20), id="this process does"),
        pytest.param(2, 2, 2, (2, 20), id="all do"),
    ],
)
def test_facts_of_an_older_reset_epoch__prove_nothing(
    in_redis: int, in_mirror: int, in_offset: int, then: tuple[int, int | None]
) -> None:
    state = lost(evidence=Evidence(end_of(10, 20, reset=in_offset), owned()))
    request = recovered({TP: entry(15, in_mirror, "id-1", None)}, state, reset=in_redis)
    assert (request.arguments["reset"], request.arguments["proven"][TP]) == then


@pytest.mark.parametrize(
    ("left", "position"),
    [
        pytest.param({}, 20, id="of the same leader epoch"),
        pytest.param({TP: Extent(4, 25)}, 20, id="of an older one, and the log still has the records"),
        pytest.param({TP: Extent(4, 15)}, 15, id="of an older one, and the log was cut"),
    ],
)
def test_facts_of_a_leader_epoch__prove_as_far_as_the_log_has_their_records(
    left: Mapping[Any, Extent], position: int
) -> None:
    state = lost(evidence=Evidence(end_of(10, 20, leader_epochs={TP: 3, TP1: 3}), owned()))
    answers: list[Answer] = [(ReadGroupOffsets(), {}), (ReadResetEpoch(), 0), (ReadLeftOfEpochs({TP: 3}), left)]
    (request,) = decided(recover, state, call(), *answers).effects
    assert request.arguments["proven"] == {TP: position}


def test_a_topic_that_was_recreated__its_old_offset_proves_nothing() -> None:
    state = lost(evidence=READ, log=replace(LOG, topics={"orders": RECREATED}))
    assert recovered({}, state).arguments["proven"] == {TP: None}


def test_a_topic_that_is_read_no_more__proves_nothing() -> None:
    state = lost(evidence=READ, log=LogView(asked_ms=NOW))
    assert recovered({}, state).arguments["proven"] == {}


def test_on_state_loss_earliest__begin_there_where_nothing_is_proven() -> None:
    decision = decided(
        recover,
        lost(log=GROWN_LOG),
        call(on_state_loss="earliest"),
        (ReadGroupOffsets(), {TP: entry(15, 0, "id-1", None), TP1: (9, "")}),
        (ReadResetEpoch(), 0),
        (ResolveOffsets(Earliest(), (TP1,)), {TP1: 3}),
        (ReadRedisTime(), NOW),
    )
    (request,) = decision.effects
    assert request.kind is Recover
    assert request.arguments["proven"] == {TP: 15, TP1: 3}


GROWTH = Growth("orders", "id-1", 1, 2, 5, 600_005)


def test_growths_that_this_process_knows__are_recorded_again() -> None:
    state = lost(owning=Owning(growths=(GROWTH,)))
    assert recovered({}, state).arguments["growths"] == (GROWTH,)


def test_a_growth_that_the_mirror_shows__is_recorded_again_once() -> None:
    mirror = {TP: entry(15, 0, "id-1", None), TP1: entry(0, 0, "id-1", None, GROWTH)}
    assert recovered(mirror, lost(log=GROWN_LOG)).arguments["growths"] == (GROWTH,)
    known = lost(log=GROWN_LOG, owning=Owning(growths=(replace(GROWTH, ends=(50,)),)))
    assert recovered(mirror, known).arguments["growths"] == (replace(GROWTH, ends=(50,)),)


def test_a_growth_without_a_record__waits_for_a_grace_from_now() -> None:
    decision = decided(
        recover,
        lost(log=GROWN_LOG),
        call(growth_grace_ms=1_000),
        (ReadGroupOffsets(), {TP: entry(15, 0, "id-1", None)}),
        (ReadResetEpoch(), 0),
        (ReadRedisTime(), 7_000),
    )
    growth = Growth("orders", "id-1", 1, 2, 7_000, 8_000, late=True)
    request = Recover(str(LOST), 0, {"orders": GROWN}, {TP: 15, TP1: None}, (growth,))
    assert decision == asks(lost(log=GROWN_LOG), request)


def test_growths_that_were_recorded_again__this_process_knows_them() -> None:
    mirror = {TP: entry(15, 0, "id-1", None), TP1: entry(0, 0, "id-1", None, GROWTH)}
    request = Recover(str(LOST), 0, {"orders": GROWN}, {TP: 15, TP1: 0}, (GROWTH,))
    answers: tuple[Answer, ...] = (ReadGroupOffsets(), mirror), (ReadResetEpoch(), 0), (request, None)
    decision = decided(recover, lost(log=GROWN_LOG), call(), *answers)
    then = joined(log=GROWN_LOG, life=LIFE.rejoining(), owning=Owning(growths=(GROWTH,)))
    assert decision == Decision(then, (WHY,), LookAgain())


def test_partitions_of_assign__a_growth_is_not_detected() -> None:
    given = Assigned({TP: (WHOLE,)})
    mirror: Mapping[Any, Any] = {TP: entry(15, 0, "id-1", None)}
    answers = (ReadGroupOffsets(), mirror), (ReadResetEpoch(), 0)
    decision = decided(recover, lost(log=GROWN_LOG), call(subscription=given), *answers)
    assert decision == asks(lost(log=GROWN_LOG), Recover(str(LOST), 0, {"orders": GROWN}, {TP: 15, TP1: None}, ()))


def test_recovered_in_the_middle_of_a_batch__the_batch_stays() -> None:
    batch = Batch(end_of(10, 20), granted=owned(), readable=owned())
    state = lost(batch=batch)
    request = Recover(str(LOST), 0, {"orders": ORDERS}, {TP: None}, ())
    answers: tuple[Answer, ...] = (ReadGroupOffsets(), {}), (ReadResetEpoch(), 0), (request, None)
    assert decided(recover, state, call(), *answers).state.batch == batch
