"""Before a batch is read: which parts of it this member still owns."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.assignment.policies import NO_POLICY, Policy
from coordinator.errors import DataLossError
from coordinator.member.authorizing import arrive, authorize, batch_of, return_tasks
from coordinator.member.batch import Batch
from coordinator.member.decision import Decision, Return
from coordinator.member.evidence import Evidence
from coordinator.member.inbox import Reach
from coordinator.member.requests import Authorize, LogLine, Pack, ReadPolicy, ReadReach
from coordinator.member.state import Owning, State
from coordinator.progress.ownership import Ownership
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.replies import Authorized
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import WHOLE, OffsetRange
from states import LEFT, LOG, NOW, RECREATED, TP, call, decided, end_of, fails, joined, owned, owning

END = end_of(10, 20)
PLANNED, REPLAYED, GRANTED = Batch(END), Batch(END, replayed=True), Batch(END, granted=owned())
READABLE = Batch(END, granted=owned(), readable=owned())
TASKS = ((Slice(TP, WHOLE, OffsetRange(10, 20)),),)
PART = LogLine("group g: part of a batch is left out: other members own it, it is parked, or its positions were reset")


def arrived(batch: Batch, **changes: Any) -> State:
    return joined(batch=batch, evidence=Evidence(END, None, (END,)), **changes)


@pytest.mark.parametrize(
    ("before", "then"),
    [
        pytest.param(GRANTED, GRANTED, id="the one that is known"),
        pytest.param(None, REPLAYED, id="of an earlier life"),
        pytest.param(Batch(end_of(0, 10)), REPLAYED, id="the next one"),
    ],
)
def test_an_offset_came__its_slices_may_be_written_from_now_on(before: Batch | None, then: Batch) -> None:
    assert decided(arrive, joined(batch=before), call(END)) == Decision(arrived(then))


@pytest.mark.parametrize("granted", [owned(), owned(LEFT), {TP: ()}])
def test_planned__authorize_and_acquire_again_before_the_next_plan(granted: Ownership) -> None:
    state = arrived(PLANNED, owning=owning())
    decision = decided(authorize, state, call(END), (Authorize(END), Authorized(granted)))
    assert decision == Decision(arrived(replace(PLANNED, granted=granted), owning=owning(stale=True)))


def test_authorized__redis_is_asked_once_for_each_batch() -> None:
    state = arrived(GRANTED)
    assert decided(authorize, state, call(END)) == Decision(state)


RECREATED_LOG = replace(LOG, topics={"orders": RECREATED})


def test_a_topic_was_recreated_since_the_plan__data_loss() -> None:
    state = arrived(READABLE, log=RECREATED_LOG)
    decision = decided(return_tasks, state, call(END))
    assert decision == Decision(state, (), fails(DataLossError, "topic 'orders' was deleted and created again"))


def test_a_topic_was_recreated_without_fail_on_data_loss__it_is_left_out() -> None:
    state = arrived(replace(READABLE, began_ms=NOW), log=RECREATED_LOG)
    nothing = Pack(END, replace(END, lanes={}))
    decision = decided(return_tasks, state, call(END, fail_on_data_loss=False), (nothing, ()))
    assert decision == Decision(state, (PART,), Return(()))


def test_readable__pack_its_tasks_which_begin_now() -> None:
    decision = decided(return_tasks, arrived(READABLE), call(END), (Pack(END, END), TASKS))
    assert decision == Decision(arrived(replace(READABLE, began_ms=NOW)), (), Return(TASKS))


def test_under_way__the_same_tasks_again_and_the_same_beginning() -> None:
    state = arrived(replace(READABLE, began_ms=NOW - 500))
    decision = decided(return_tasks, state, call(END), (Pack(END, END), TASKS))
    assert decision == Decision(state, (), Return(TASKS))


def test_a_lane_on_trial__is_packed_apart() -> None:
    state = arrived(replace(READABLE, trials={(TP, WHOLE): 1}))
    decision = decided(return_tasks, state, call(END), (Pack(END, END, apart=frozenset({(TP, WHOLE)})), TASKS))
    assert decision.outcome == Return(TASKS)


@pytest.mark.parametrize(
    ("batch", "looked_at_ms", "asked"),
    [
        pytest.param(replace(READABLE, replayed=True), 0, True, id="a replay asks Redis, since no look came before it"),
        pytest.param(replace(READABLE, replayed=True), NOW, False, id="after a look it asks no more"),
        pytest.param(READABLE, NOW, False, id="planned here"),
    ],
)
def test_a_topic_in_partition_order__its_partitions_are_packed_whole(
    batch: Batch, looked_at_ms: int, asked: bool
) -> None:
    """Rule: partition-order."""
    ordered = Policy(refused_topics=frozenset({"orders", "returns"}))
    known = Owning(looked_at_ms=looked_at_ms, policy=ordered if looked_at_ms else NO_POLICY)
    answers = ((ReadPolicy(), ordered),) if asked else ()
    packed = Pack(END, END, in_order=frozenset({"orders"}))
    decision = decided(return_tasks, arrived(batch, owning=known), call(END), *answers, (packed, TASKS))
    assert decision.outcome == Return(TASKS)


def test_the_batch_of_a_call__is_the_known_one_or_of_an_earlier_life() -> None:
    assert batch_of(joined(batch=GRANTED), call(END)) == GRANTED
    assert batch_of(joined(batch=GRANTED), call(end_of(20, 30))) == Batch(end_of(20, 30), replayed=True)
    assert batch_of(joined(), call(end_of(20, 30))) == Batch(end_of(20, 30), replayed=True)


EARLY = end_of(10, 20, early=1)
TO_15 = {TP: HashMap.of(WHOLE, 15)}
ALL_REACH = (ReadReach(), Reach.ALL)
NOTHING_FORBIDDEN = (ReadPolicy(), NO_POLICY)


@pytest.mark.parametrize("reach", [Reach.UNKNOWN, Reach.NONE])
@pytest.mark.parametrize("replayed", [False, True])
def test_some_tasks_may_not_report_their_ends__it_is_sealed_as_planned(reach: Reach, replayed: bool) -> None:
    state, batch = arrived_early(Batch(EARLY, replayed=replayed)), Batch(EARLY, replayed=replayed)
    asked = Authorize(EARLY, replayed=replayed, as_planned=True)
    decision = decided(
        authorize, state, call(EARLY), (ReadReach(), reach), (asked, Authorized(owned(), as_planned=True))
    )
    assert decision.state.batch == replace(batch, granted=owned(), as_planned=True)


def test_all_tasks_of_an_earlier_life_could_report__its_replay_is_not_sealed_as_planned() -> None:
    state, batch = arrived_early(Batch(EARLY, replayed=True)), Batch(EARLY, replayed=True)
    asked = Authorize(EARLY, replayed=True, as_planned=True)
    decision = decided(authorize, state, call(EARLY), (ReadReach(), Reach.UNKNOWN), (asked, Authorized(owned())))
    assert decision.state.batch == replace(batch, granted=owned())


@pytest.mark.parametrize("answer", [Authorized(owned(), TO_15), Authorized(owned(), None, unknown=True)])
def test_planned_here__a_seal_in_redis_is_of_another_batch(answer: Authorized) -> None:
    state = arrived_early(Batch(EARLY))
    decision = decided(authorize, state, call(EARLY), ALL_REACH, (Authorize(EARLY), answer))
    assert decision.state.batch == Batch(EARLY, granted=owned())


@pytest.mark.parametrize(
    ("answer", "reads"),
    [
        pytest.param(Authorized(owned(), TO_15), end_of(10, 15, early=1), id="sealed by an earlier life"),
        pytest.param(Authorized(owned(), {}), EARLY, id="sealed at its planned ends"),
        pytest.param(Authorized(owned()), EARLY, id="never sealed"),
        pytest.param(Authorized(owned(), unknown=True), end_of(10, 10, early=1), id="its seal may be lost"),
    ],
)
def test_replayed__read_to_the_ends_that_an_earlier_life_sealed(answer: Authorized, reads: StreamOffset) -> None:
    """Rules: replay-fixed, unknown-is-beginning."""
    state = arrived_early(Batch(EARLY, replayed=True))
    state = decided(authorize, state, call(EARLY), ALL_REACH, (Authorize(EARLY, replayed=True), answer)).state
    batch = replace(state.batch or Batch(EARLY), readable=owned())
    decision = decided(
        return_tasks,
        replace(state, batch=batch),
        call(EARLY),
        NOTHING_FORBIDDEN,
        (Pack(EARLY, reads), TASKS),
    )
    assert decision.outcome == Return(TASKS)
    assert batch.may_end_early == (answer == Authorized(owned()))


LEFT_OUT = LogLine("group g: a replay leaves out records that were acknowledged")


@pytest.mark.parametrize(
    ("batch", "option"),
    [
        pytest.param(REPLAYED, True, id="not on request"),
        pytest.param(PLANNED, False, id="planned here"),
    ],
)
def test_not_a_replay_on_request__done_offsets_are_not_even_read(batch: Batch, option: bool) -> None:
    answer = (Authorize(END), Authorized(owned()))
    decision = decided(authorize, arrived(batch), call(END, replay_acknowledged=option), answer)
    assert decision.state.batch == replace(batch, granted=owned())


def test_replayed_on_request_and_sealed__the_ends_hold_and_done_offsets_are_left_out() -> None:
    sealed = replace(Batch(EARLY, replayed=True), granted=owned(), readable=owned(), ends=TO_15)
    to_15 = {TP: Progress((Segment(WHOLE, 12, (OffsetRange(14, 20),)),))}
    reads = replace(EARLY, lanes={TP: (EARLY.lanes[TP][0]._replace(offsets=(OffsetRange(12, 14),)),)})
    state = arrived_early(replace(sealed, done=to_15))
    decision = decided(return_tasks, state, call(EARLY), NOTHING_FORBIDDEN, (Pack(EARLY, reads), TASKS))
    assert (decision.effects, decision.outcome) == ((LEFT_OUT,), Return(TASKS))


def arrived_early(batch: Batch) -> State:
    return joined(batch=batch, evidence=Evidence(EARLY, None, (EARLY,)))
