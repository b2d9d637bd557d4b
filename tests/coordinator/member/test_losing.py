"""Lost records: refused with a named error, or accepted."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.errors import DataLossError
from coordinator.member.decision import RETRY_MS, Call, Decision, LookAgain, Next
from coordinator.member.evidence import Evidence
from coordinator.member.kinds import Request
from coordinator.member.losing import ENDS_MS, settle_losses
from coordinator.member.pacing import adopt_targets, ends_of
from coordinator.member.requests import (
    Claim,
    Event,
    LogLine,
    Mirror,
    ReadEpochEnds,
    ReadExtents,
    ReadHighWatermarks,
    ReadProgress,
    Recreate,
    ReportEnds,
)
from coordinator.member.state import Losses, Low, Mirrored, Pacing, Shown, State
from coordinator.progress.data_loss import LOW_MS
from coordinator.progress.leader_epochs import Extent
from coordinator.progress.ownership import Fact
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.ranges import WHOLE, offsets_of
from coordinator.values.subscription import Bounds
from states import (
    GROWN_LOG,
    LEFT,
    LOG,
    NONCE,
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
    fails,
    held,
    joined,
    owning,
    owns,
)

ENDS = ReportEnds({TP: 100}, {})
MIRROR = Mirror((TP,), ("orders",)), True
ACCEPT = call(fail_on_data_loss=False)


def settled(state: State, report: Request[Any] = ENDS, **losses: Any) -> State:
    """The state once nothing is lost and the log ends are stored."""
    looked_at = (state.owning.acquired, state.log.bounds, state.log.topics, NONCE)
    return replace(state, losses=Losses(settled=looked_at, **losses), shown=shown(report))


def shown(report: Request[Any] = ENDS, ends_ms: int | None = NOW, nonce: str = NONCE) -> Shown:
    """The log ends of this report are stored."""
    return Shown(ends=(nonce, (report.arguments["ends"], report.arguments["extents"])), ends_ms=ends_ms)


def bounds(beginning: int, end: int, epoch: int = -1, **changes: Any) -> State:
    """The member owns the partition at position 10, and its log is from `beginning` to `end`."""
    log = replace(LOG, bounds={TP: Bounds(beginning, end, epoch)}, reached={TP: end})
    return joined(log=log, owning=owning(held(10)), **changes)


def test_nothing_is_lost__store_the_log_ends() -> None:
    assert decided(settle_losses, owns(), call()) == Decision(settled(owns()), (ENDS,))


def test_nothing_has_changed__check_nothing() -> None:
    assert decided(settle_losses, settled(owns()), call()) == Decision(settled(owns()))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"owning": owning(held(20))}, id="positions"),
        pytest.param({"log": replace(LOG, bounds={TP: Bounds(0, 101)})}, id="log ends"),
        pytest.param({"log": replace(LOG, topics={"orders": replace(ORDERS, partitions=(0, 1))})}, id="topics"),
    ],
)
def test_something_has_changed__check_again(change: dict[str, Any]) -> None:
    state = replace(settled(owns()), **change)
    again = replace(state, shown=Shown())
    (request,) = decided(settle_losses, again, call()).effects
    assert request.kind is ReportEnds


def test_the_same_log_ends_as_stored_before__are_not_stored_again() -> None:
    state = owns(shown=shown())
    assert decided(settle_losses, state, call()) == Decision(settled(owns()))


@pytest.mark.parametrize("state", [settled(owns()), owns()], ids=["nothing has changed", "the assignment is new"])
def test_the_same_log_ends_are_old__store_them_again(state: State) -> None:
    state = replace(state, shown=shown(ends_ms=NOW - ENDS_MS))
    assert decided(settle_losses, state, call()) == Decision(settled(owns()), (ENDS,))


def test_the_same_log_ends_are_almost_old__store_nothing() -> None:
    state = replace(settled(owns()), shown=shown(ends_ms=NOW - ENDS_MS + 1))
    assert decided(settle_losses, state, call()) == Decision(state)


def test_the_log_ends_were_stored_at_another_nonce__store_them_again() -> None:
    state = owns(shown=shown(ends_ms=None, nonce="n-0"))
    assert decided(settle_losses, state, call()) == Decision(settled(owns()), (ENDS,))


def test_log_ends_are_stored_with_the_time_of_the_look_at_the_topics() -> None:
    """Redis may have been away since then (rule: growth-order)."""
    state = joined(owning=replace(owns().owning, topics_at_ms=NOW - 50_000))
    assert decided(settle_losses, state, call()).effects == (ReportEnds({TP: 100}, {}, NOW - 50_000),)


def test_a_partition_without_log_ends__look_again() -> None:
    state = owns(log=replace(GROWN_LOG, bounds={TP1: Bounds(0, 50)}))
    assert decided(settle_losses, state, call()) == Decision(state, (), LookAgain(RETRY_MS))


@pytest.mark.parametrize(
    ("state", "words"),
    [
        pytest.param(bounds(30, 100), "orders-0: records 10-29 are gone before they were read", id="aged"),
        pytest.param(
            owns(log=replace(LOG, topics={"orders": RECREATED})),
            "topic 'orders' was deleted and created again (topic id id-1, now id-2)",
            id="recreated",
        ),
    ],
)
def test_lost_under_fail_on_data_loss__the_query_ends(state: State, words: str) -> None:
    assert decided(settle_losses, state, call()) == Decision(state, (), fails(DataLossError, words))


def accepted(state: State, loss: str, **changes: Any) -> Decision:
    """The decision once a loss is accepted: positions have moved, and older offsets prove nothing."""
    then = replace(state, owning=replace(state.owning, stale=True), evidence=Evidence(), **changes)
    return Decision(then, (LogLine(f"group g lost records: {loss}"), Event("loss", loss)), LookAgain(RETRY_MS))


@pytest.mark.parametrize(
    ("epoch", "epochs", "answers", "losses"),
    [
        pytest.param(-1, {}, (), Losses(), id="of no leader epoch"),
        pytest.param(
            4, {TP: 4}, ((ReadExtents(("orders",)), {}),), Losses(checked={TP: (NONCE, 4)}), id="of its leader epoch"
        ),
    ],
)
def test_aged__claim_the_beginning_of_the_log(
    epoch: int, epochs: dict[Any, int], answers: tuple[Answer, ...], losses: Losses
) -> None:
    state = bounds(30, 100, epoch, evidence=Evidence(end_of()))
    here = StreamOffset("g", reset=0, topic_ids={"orders": "id-1"}, leader_epochs=epochs)
    claim = Claim(here, {TP: (Fact(WHOLE, 30),)}), None
    decision = decided(settle_losses, state, ACCEPT, *answers, claim, MIRROR)
    assert decision == accepted(state, "orders-0: records 10-29 are gone before they were read", losses=losses)


def low(since_ms: int = NOW, epoch: int = -1, **changes: Any) -> State:
    """The log ends at 9, below the position, since then."""
    state = bounds(0, 9, **changes)
    return replace(state, log=replace(state.log, reached={TP: 10}, low={TP: Low(epoch, since_ms)}))


MARK = ReadHighWatermarks((TP,))
SHORT = "orders-0: the log ends at 9, before the position 10 of the group"


@pytest.mark.parametrize("accepts", [call(), ACCEPT])
def test_the_log_ends_before_a_position__leave_it_alone_and_look_again(accepts: Call) -> None:
    """As after an election: the new leader does not know yet how far its log is replicated."""
    decision = decided(settle_losses, bounds(0, 9), accepts, (MARK, {TP: 9}))
    assert (decision.state.log, decision.outcome) == (low().log, Next())
    assert ends_of(decision.state) == {TP: 0}
    again = decided(settle_losses, low(NOW - LOW_MS + 1), accepts, (MARK, {TP: 9}))
    assert again.state.log == low(NOW - LOW_MS + 1).log


def test_an_earlier_end_was_larger__targets_stay() -> None:
    """Position 10 is in the log. Only records above it seem to be gone."""
    state = joined(
        log=replace(LOG, bounds={TP: Bounds(0, 90)}), owning=owning(held(10)), pace=Pacing(targets={TP: 100})
    )
    state = decided(settle_losses, state, call(), (MARK, {TP: 90})).state
    assert (ends_of(state), decided(adopt_targets, state, call()).state.pace.targets) == ({TP: 0}, {TP: 100})
    late = NOW + LOW_MS
    state = decided(settle_losses, state, call(), (MARK, {TP: 90}), now_ms=late).state
    assert (ends_of(state), decided(adopt_targets, state, call()).state.pace.targets) == ({TP: 90}, {TP: 90})
    assert state.log.reached == {TP: 90}, "an end that stays is the end"


def test_the_end_is_there_again__go_on() -> None:
    state = low(NOW - LOW_MS + 1)
    state = replace(state, log=replace(state.log, bounds={TP: Bounds(0, 12)}))
    decision = decided(settle_losses, state, call())
    assert (decision.state.log.low, decision.state.log.reached) == ({}, {TP: 12})


def test_the_end_was_there_in_between__it_is_low_since_now() -> None:
    """The second look is at once, as a high watermark."""
    decision = decided(settle_losses, low(NOW - LOW_MS), call(), (MARK, {TP: 10}))
    assert decision.state.log.low == {}


def test_it_is_low_at_another_leader_epoch__look_again() -> None:
    state = low(NOW - LOW_MS)
    state = replace(state, log=replace(state.log, bounds={TP: Bounds(0, 9, 4)}))
    decision = decided(settle_losses, state, call(), NO_EXTENTS, (MARK, {TP: 9}))
    assert decision.state.log.low == {TP: Low(4, NOW)}


def test_it_is_low_and_the_older_leader_epoch_ends_lower__data_loss_at_once() -> None:
    state = replace(low(), losses=Losses(completed=EARLIER))
    state = replace(state, log=replace(state.log, bounds={TP: Bounds(0, 9, 4)}))
    decision = decided(settle_losses, state, call(), (ReadEpochEnds({TP: 3}), {TP: 15}), NO_EXTENTS)
    assert decision == Decision(state, (), fails(DataLossError, CUT))


def test_truncated__move_back_to_the_end_of_the_log() -> None:
    state = low(NOW - LOW_MS)
    decision = decided(
        settle_losses,
        state,
        ACCEPT,
        (ReadHighWatermarks((TP,)), {TP: 9}),
        (Recreate({"orders": ORDERS}, {TP: 9}, {}), None),
        MIRROR,
    )
    log = replace(state.log, reached={TP: 9}, low={TP: Low(-1, NOW - LOW_MS, believed=True)})
    assert decision == accepted(state, SHORT, log=log)


def test_recreated__begin_at_the_beginning_of_the_new_logs() -> None:
    log = replace(LOG, topics={"orders": RECREATED}, bounds={TP: Bounds(3, 100)}, reached={TP: 100})
    state = joined(log=log, owning=owning(held(10)))
    decision = decided(settle_losses, state, ACCEPT, (Recreate({"orders": RECREATED}, {TP: 3}), None), MIRROR)
    assert decision == accepted(state, "topic 'orders' was deleted and created again (topic id id-1, now id-2)")


EARLIER = replace(end_of(10, 20), leader_epochs={TP: 3})
CUT = (
    "orders-0: records 15-19, which the group has read (leader epoch 3), are no longer in the log, others may have "
    "their offsets"
)
KEY = ("id-1", TP, 3, 4)
NO_EXTENTS: Answer = ReadExtents(("orders",)), {}
WITH_EPOCH = ReportEnds({TP: 100}, {TP: "4@100 reset=0 topic=id-1"})


def unclean(**changes: Any) -> State:
    """The leader epoch is 4 now; the sink completed a batch up to 20 that was planned under leader epoch 3."""
    return replace(bounds(0, 100, 4, losses=Losses(completed=EARLIER)), **changes)


def test_the_last_batch_lies_in_the_log_under_its_leader_epoch__nothing_is_lost() -> None:
    state = unclean()
    decision = decided(settle_losses, state, call(), (ReadEpochEnds({TP: 3}), {TP: 20}), NO_EXTENTS)
    log = replace(state.log, epoch_ends={KEY: 20})
    then = settled(replace(state, log=log), WITH_EPOCH, completed=EARLIER, checked={TP: (NONCE, 4)})
    assert decision == Decision(then, (WITH_EPOCH,))


def test_the_log_was_cut_below_the_last_batch__data_loss() -> None:
    state = unclean()
    decision = decided(settle_losses, state, call(), (ReadEpochEnds({TP: 3}), {TP: 15}), NO_EXTENTS)
    assert decision == Decision(state, (), fails(DataLossError, CUT))


def test_the_log_was_cut__move_back_to_the_cut_and_forget_the_batch() -> None:
    state = unclean()
    decision = decided(
        settle_losses,
        state,
        ACCEPT,
        (ReadEpochEnds({TP: 3}), {TP: 15}),
        NO_EXTENTS,
        (Recreate({"orders": ORDERS}, {TP: 15}, {TP: "4@100 reset=0 topic=id-1"}), None),
        MIRROR,
    )
    losses = Losses(completed=replace(EARLIER, lanes={}), checked={TP: (NONCE, 4)})
    log = replace(state.log, epoch_ends={KEY: 15})
    assert decision == accepted(state, CUT, losses=losses, log=log)


def test_redis_knows_an_earlier_cut_that_is_deeper__move_back_to_that() -> None:
    """An old copy of Redis answers: its position is from before a cut that was accepted."""
    state = unclean()
    decision = decided(
        settle_losses,
        state,
        ACCEPT,
        (ReadEpochEnds({TP: 3}), {TP: 15}),
        (ReadExtents(("orders",)), {TP: "2@18 reset=0 topic=id-1"}),
        (ReadProgress((TP,)), {TP: Progress((Segment(WHOLE, 18),))}),
        (ReadEpochEnds({TP: 2}), {TP: 12}),
        (Recreate({"orders": ORDERS}, {TP: 12}, {TP: "4@100 reset=0 topic=id-1"}), None),
        MIRROR,
    )
    assert any("records 12-19" in str(effect.arguments.get("text")) for effect in decision.effects)


def test_a_newer_leader_epoch_of_a_silent_leader__is_checked_once_it_answers() -> None:
    state = unclean()
    state = replace(state, log=replace(state.log, silent=frozenset({TP})))
    decision = decided(settle_losses, state, call())
    assert decision.state.losses.checked == {}
    assert decision.effects == (ReportEnds({}, {}),)


def test_a_leader_epoch_that_was_checked__is_not_asked_about_again() -> None:
    state = unclean(losses=Losses(checked={TP: (NONCE, 4)}))
    assert decided(settle_losses, state, call()).effects == (WITH_EPOCH,)


def test_checked_at_another_nonce__ask_again() -> None:
    state = unclean(losses=Losses(checked={TP: ("n-0", 4)}))
    assert decided(settle_losses, state, call()) == asks(state, ReadExtents(("orders",)))


def known(text: str, **changes: Any) -> tuple[State, Answer]:
    return unclean(losses=Losses(), **changes), (ReadExtents(("orders",)), {TP: text})


def test_others_read_under_an_older_leader_epoch__as_far_as_the_group_has_positions_there() -> None:
    state, extents = known("3@80 reset=0 topic=id-1")
    positions: Answer = (
        ReadProgress((TP,)),
        {TP: Progress((Segment(LEFT, 20), Segment(RIGHT, 30, offsets_of("35-39"))))},
    )
    decision = decided(settle_losses, state, call(), extents, positions, (ReadEpochEnds({TP: 3}), {TP: 39}))
    assert decision == Decision(state, (), fails(DataLossError, "orders-0: records 39-39, which the group has read"))


def test_others_committed_less_than_the_log_was_cut__void_the_batches_under_way_and_fail_no_query() -> None:
    state, extents = known("3@80 reset=0 topic=id-1")
    positions: Answer = ReadProgress((TP,)), {TP: Progress((Segment(WHOLE, 10),))}
    decision = decided(
        settle_losses,
        state,
        call(),
        *(extents, positions, (ReadEpochEnds({TP: 3}), {TP: 39})),
        (Recreate({"orders": ORDERS}, {TP: 39}, {TP: "4@100 reset=0 topic=id-1"}), None),
        MIRROR,
    )
    why = (
        "orders-0: records 39-79, which no query has committed (leader epoch 3), are no longer in the log; batches "
        "under way read their offsets again"
    )
    assert decision.effects == (LogLine(f"group g lost records: {why}"), Event("loss", why))


def test_the_log_was_cut_above_everything_that_any_member_saw__go_on() -> None:
    state, extents = known("3@80 reset=0 topic=id-1")
    positions: Answer = ReadProgress((TP,)), {TP: Progress((Segment(WHOLE, 10),))}
    decision = decided(settle_losses, state, call(), extents, positions, (ReadEpochEnds({TP: 3}), {TP: 80}))
    assert decision.effects == (WITH_EPOCH,)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("4@80 reset=0 topic=id-1", id="the same leader epoch"),
        pytest.param("3@80 reset=1 topic=id-1", id="another reset epoch"),
        pytest.param("3@80 reset=0 topic=id-2", id="another topic id"),
    ],
)
def test_an_extent_without_evidence__is_left_out(text: str) -> None:
    state, extents = known(text)
    assert decided(settle_losses, state, call(), extents).effects == (WITH_EPOCH,)


def test_redis_was_lost__the_mirror_knows_the_older_leader_epoch() -> None:
    state, _ = known("", mirrored=Mirrored(extents={TP: Extent(3, 80)}))
    decision = decided(settle_losses, state, call(), NO_EXTENTS)
    assert decision == asks(state, ReadProgress((TP,)))


def test_a_partition_without_positions__has_lost_nothing() -> None:
    state, extents = known("3@80 reset=0 topic=id-1")
    decision = decided(settle_losses, state, call(), extents, (ReadProgress((TP,)), {}))
    assert decision.effects == (WITH_EPOCH,)
