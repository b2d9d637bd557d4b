"""Which offsets of a checkpoint a member accepts."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.errors import CheckpointMismatchError, DataLossError
from coordinator.member.accepting import accept
from coordinator.member.committing import witness
from coordinator.member.decision import RETRY_MS, Decision, LookAgain, Step
from coordinator.member.evidence import Evidence
from coordinator.member.requests import Commit, LogLine, ReadHighWatermarks, ReadResetEpoch, ReadTopics
from coordinator.member.state import Commits, CommitUnderWay, Life, Losses, Low, State, Turn
from coordinator.progress.data_loss import LOW_MS
from coordinator.progress.ownership import completed
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Assigned, Bounds, Pattern, Topic
from states import (
    FIRST,
    FRESH,
    LIFE,
    LOG,
    NOW,
    ORDERS,
    RECREATED,
    TP,
    TP1,
    Answer,
    call,
    decided,
    end_of,
    fails,
    joined,
)

PATTERN = Pattern("ord.*")
OTHER = Topic("other", "id-9", (0,))


def within(offset: StreamOffset, **changes: Any) -> State:
    return joined(losses=Losses(within=offset), **changes)


def test_a_checkpoint_of_another_group__refuse() -> None:
    decision = decided(accept, joined(), call(end_of(group="h")))
    assert decision == Decision(joined(), (), fails(CheckpointMismatchError, "belongs to group 'h', this query to"))


def test_a_topic_to_which_the_query_does_not_subscribe__refuse() -> None:
    state = joined(log=replace(LOG, topics={"other": OTHER}))
    decision = decided(accept, state, call(end_of()))
    assert decision == Decision(state, (), fails(CheckpointMismatchError, "the checkpoint reads topic 'orders'"))


def test_a_topic_of_a_pattern_that_was_deleted__data_loss() -> None:
    state = joined(log=replace(LOG, topics={"other": OTHER}))
    decision = decided(accept, state, call(end_of(), subscription=PATTERN))
    assert decision == Decision(state, (), fails(DataLossError, "topic 'orders' was deleted while it was read"))


def test_a_deleted_topic_without_fail_on_data_loss__warn() -> None:
    state = joined(log=replace(LOG, topics={"other": OTHER}))
    decision = decided(accept, state, call(end_of(), subscription=PATTERN, fail_on_data_loss=False))
    assert decision == Decision(state, (LogLine("group g: topic 'orders' was deleted while it was read"),))


@pytest.mark.parametrize(
    ("life", "member", "then"),
    [
        pytest.param(FRESH, "m-7", "m-7", id="the checkpoint names it"),
        pytest.param(FRESH, None, "m-minted", id="a new checkpoint"),
        pytest.param(LIFE, "m-7", "m-1", id="it has one already"),
    ],
)
def test_accepted__the_member_has_its_identity(life: Life, member: str | None, then: str) -> None:
    offset = end_of(member=member)
    decision = decided(accept, joined(life=life), call(offset))
    assert decision == Decision(within(offset, life=replace(life, member=then)))


def test_it_lies_within_the_logs_as_they_were_seen__ask_nothing() -> None:
    assert decided(accept, joined(), call(end_of(10, 100))) == Decision(within(end_of(10, 100)))


def test_it_was_found_to_lie_within_the_logs_before__ask_nothing() -> None:
    state = within(end_of(10, 200))
    assert decided(accept, state, call(end_of(10, 200))) == Decision(state)


def test_without_fail_on_data_loss__it_is_accepted_as_it_is() -> None:
    assert decided(accept, joined(), call(end_of(10, 200), fail_on_data_loss=False)) == Decision(joined())


def test_a_log_that_has_grown_since__accept() -> None:
    decision = decided(
        accept,
        joined(),
        call(end_of(10, 200)),
        (ReadResetEpoch(), 0),
        (ReadTopics(), {"orders": ORDERS}),
        (ReadHighWatermarks((TP,)), {TP: 200}),
    )
    assert decision == Decision(within(end_of(10, 200), log=replace(LOG, beginnings=None, reached={TP: 200})))


def low(since_ms: int = NOW, **changes: Any) -> State:
    """The log has ended below an offset of the checkpoint since then."""
    return joined(log=replace(LOG, low={TP: Low(-1, since_ms)}), **changes)


SINCE_LONG = NOW - LOW_MS


def beyond(mark: int) -> tuple[Answer, ...]:
    """A checkpoint that names offset 200, and this high watermark."""
    return (ReadResetEpoch(), 0), (ReadTopics(), {"orders": ORDERS}), (ReadHighWatermarks((TP,)), {TP: mark})


@pytest.mark.parametrize(("step", "fail_on_data_loss"), [(accept, True), (witness, True), (witness, False)])
def test_a_log_that_ends_before_it__look_again(step: Step, fail_on_data_loss: bool) -> None:
    """A new leader may not know yet how far its log is replicated."""
    start = call(end_of(10, 200), fail_on_data_loss=fail_on_data_loss)
    log = replace(LOG, beginnings=None, low={TP: Low(-1, NOW)})
    assert decided(step, joined(), start, *beyond(199)) == Decision(joined(log=log), (), LookAgain(RETRY_MS))
    state = low(SINCE_LONG + 1)
    again = decided(step, state, start, *beyond(199))
    assert again == Decision(replace(state, log=replace(state.log, beginnings=None)), (), LookAgain(RETRY_MS))


def test_a_log_that_ended_before_it__accept_once_it_is_there() -> None:
    decision = decided(accept, low(SINCE_LONG), call(end_of(10, 200)), *beyond(200))
    assert decision == Decision(within(end_of(10, 200), log=replace(LOG, beginnings=None, reached={TP: 200})))


def test_a_log_that_reached_so_far_before__accept() -> None:
    """Its end is low now: that is for the losses."""
    state = joined(log=replace(LOG, reached={TP: 200}))
    assert decided(accept, state, call(end_of(10, 200))) == Decision(within(end_of(10, 200), log=state.log))


def test_a_log_that_ends_before_it_for_seconds__data_loss() -> None:
    decision = decided(accept, low(SINCE_LONG), call(end_of(10, 200)), *beyond(199))
    words = "orders-0: the log ends at 199, before the offset 200 of the checkpoint"
    assert decision == Decision(low(SINCE_LONG), (), fails(DataLossError, words))


def test_another_leader__look_again() -> None:
    state = low(SINCE_LONG)
    state = replace(state, log=replace(state.log, bounds={TP: Bounds(0, 100, 4)}))
    decision = decided(accept, state, call(end_of(10, 200)), *beyond(199))
    assert decision.state.log.low == {TP: Low(4, NOW)}
    assert decision.outcome == LookAgain(RETRY_MS)


def test_an_operator_has_moved_positions_since__no_part_of_it_is_used() -> None:
    decision = decided(accept, joined(), call(end_of(10, 200, reset=1)), (ReadResetEpoch(), 2))
    assert decision == Decision(within(end_of(10, 200, reset=1)))


def test_a_topic_that_was_recreated_since__is_left_to_the_losses() -> None:
    log = replace(LOG, topics={"orders": RECREATED})
    decision = decided(accept, joined(log=log), call(end_of(10, 200)))
    assert decision == Decision(within(end_of(10, 200), log=log))


FAR = end_of(10, 20, lanes={TP1: end_of().lanes[TP]})


def test_a_partition_that_its_topic_does_not_have__refuse() -> None:
    decision = decided(accept, joined(), call(FAR), (ReadResetEpoch(), 0), (ReadTopics(), {"orders": ORDERS}))
    assert decision == Decision(joined(), (), fails(CheckpointMismatchError, "reads orders-1, a partition that"))


def test_a_partition_is_not_in_assign__accept() -> None:
    decision = decided(
        accept,
        joined(),
        call(FAR, subscription=Assigned({TP: (WHOLE,)})),
        (ReadResetEpoch(), 0),
        (ReadTopics(), {"orders": ORDERS}),
    )
    assert decision == Decision(within(FAR, log=replace(LOG, beginnings=None)))


GIVEN_UP = replace(LOG, beginnings=None, low={TP: Low(-1, SINCE_LONG, believed=True)})
"""The log as it is, once its low end is believed: at 100."""


def test_start_beyond_a_log_without_fail_on_data_loss__it_is_not_committed() -> None:
    """The partition is left out of the commit, and the checkpoint's offset proves nothing any more."""
    start, mine = end_of(10, 200), replace(end_of(10, 200), lanes={})
    decision = decided(
        witness,
        low(SINCE_LONG),
        call(start, fail_on_data_loss=False),
        (ReadResetEpoch(), 0),
        (ReadTopics(), {"orders": ORDERS}),
        (ReadHighWatermarks((TP,)), {TP: 100}),
    )
    request = Commit(mine, completed(mine), start.digest)
    warning = "group g: orders-0: the log ends at 100, before the offset 200 of the checkpoint; it is not committed"
    state = joined(
        log=GIVEN_UP,
        evidence=Evidence(unconfirmed=(start,)),
        commits=Commits(CommitUnderWay(start, request, all_of_it=False)),
    )
    assert decision == Decision(state, (LogLine(warning),))


def test_start_of_a_deleted_topic_without_fail_on_data_loss__redis_decides() -> None:
    state = joined(log=replace(LOG, topics={"other": OTHER}))
    decision = decided(witness, state, call(end_of(10, 200), subscription=PATTERN, fail_on_data_loss=False))
    request = Commit(end_of(10, 200), completed(end_of(10, 200)), end_of(10, 200).digest)
    assert decision.state.commits == Commits(CommitUnderWay(end_of(10, 200), request))


def test_committed_start_beyond_a_log__it_must_vanish_from_the_next_offset() -> None:
    start = end_of(10, 200)
    decision = decided(
        witness,
        low(SINCE_LONG, commits=Commits(None, start)),
        call(start, fail_on_data_loss=False),
        (ReadResetEpoch(), 0),
        (ReadTopics(), {"orders": ORDERS}),
        (ReadHighWatermarks((TP,)), {TP: 100}),
    )
    warning = "group g: orders-0: the log ends at 100, before the offset 200 of the checkpoint; it is not committed"
    turn = Turn(committed=True, skipped=True)
    state = joined(log=GIVEN_UP, commits=Commits(None, start), turn=turn)
    assert decision == Decision(state, (LogLine(warning),))


def test_log_ends_are_not_known_yet__ask() -> None:
    state = joined(log=replace(LOG, bounds={}, reached={}))
    decision = decided(
        accept,
        state,
        call(end_of(10, 20)),
        (ReadResetEpoch(), 0),
        (ReadTopics(), {"orders": ORDERS}),
        (ReadHighWatermarks((TP,)), {TP: 20}),
    )
    log = replace(LOG, bounds={}, beginnings=None, reached={TP: 20})
    assert decision == Decision(within(end_of(10, 20), log=log))


def test_the_initial_offset__accept() -> None:
    assert decided(accept, joined(), call(FIRST)) == Decision(within(FIRST))
