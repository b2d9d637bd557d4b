"""The steps of a query without a group: its checkpoint holds its positions."""

from dataclasses import replace
from typing import Any, cast

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.errors import DataLossError
from coordinator.member import standalone
from coordinator.member.apply import World
from coordinator.member.decision import Call, Decision, LookAgain, Return
from coordinator.member.evidence import Evidence
from coordinator.member.kinds import Request
from coordinator.member.pacing import ends_of
from coordinator.member.requests import (
    Grant,
    Learn,
    LogBatch,
    LogLine,
    Pack,
    ReadEpochEnds,
    ReadHighWatermarks,
    ReadLogEnds,
    ReadTopics,
)
from coordinator.member.state import Life, Losses, Low, Owning, Pacing, State, Turn
from coordinator.member.turns import Turns
from coordinator.plan.cost.batch_cost import BatchCost, Ended
from coordinator.plan.cost.steering import Allowance
from coordinator.plan.planning import Cutting
from coordinator.progress.data_loss import LOW_MS, Aged
from coordinator.progress.ownership import Owned
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.stream_offset import ALONE, Lane, StreamOffset
from coordinator.redis.lane_lines import BatchLine
from coordinator.redis.replies import Acquired
from coordinator.values.clock import Clock
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import Assigned, Bounds
from progresses import starting_at
from states import LEFT, LOG, NOW, ORDERS, RECREATED, RIGHT, TP, asks, call, decided, fails

GIVEN = Assigned({TP: (WHOLE,)})


QUERY = State(Life(""), LOG)


def at(start: int, until: int | None = None, hashes: HashRange = WHOLE, **changes: Any) -> StreamOffset:
    """An offset without a group, that reads from `start` to `until`."""
    reads = (OffsetRange(start, until),) if until else ()
    lanes = {TP: (Lane(hashes, ALONE, start, reads),)}
    return replace(StreamOffset(None, topic_ids={"orders": "id-1"}, lanes=lanes), **changes)


def ours(offset: StreamOffset | None = None, given: Assigned = GIVEN, **settings: Any) -> Call:
    """A call of Spark on a query without a group."""
    of = call(offset or StreamOffset(None), subscription=given)
    return replace(of, setup=replace(of.setup, settings=GroupSettings("", **settings)))


def owns(position: int, **changes: Any) -> State:
    """The query is at this position."""
    progress = {TP: starting_at(position)}
    acquired = Acquired(0, {"orders": "id-1"}, {TP: (Owned(WHOLE, ALONE),)}, progress, {})
    return replace(QUERY, owning=Owning(acquired), **changes)


def test_in_the_sink__learn_once_and_nothing_is_unconfirmed() -> None:
    state = replace(QUERY, evidence=Evidence(unconfirmed=(at(10, 20),)))
    decision = decided(standalone.learn, state, ours(at(10, 20)), (Learn(at(10, 20)), None))
    then = replace(QUERY, turn=Turn(learned=True))
    assert decision == Decision(then)
    assert decided(standalone.learn, then, ours(at(10, 20))) == Decision(then)


def test_a_batch_of_this_process_is_in_the_sink__log_its_line() -> None:
    ended = Ended(BatchCost((), 1_000.0), 1_500.0)
    decision = decided(standalone.learn, QUERY, ours(at(0, 5)), (Learn(at(0, 5)), ended))
    assert decision.effects == (LogBatch(BatchLine("", 0, 0, 1.5, 0, "-", reading=0)),)


def test_start__its_ends_are_the_positions() -> None:
    start = at(10, lanes={TP: (Lane(LEFT, ALONE, 10, (OffsetRange(10, 20),)), Lane(RIGHT, ALONE, 15))})
    decision = decided(standalone.take_positions, QUERY, ours(start))
    progress = {TP: Progress((Segment(LEFT, 20), Segment(RIGHT, 15)))}
    acquired = Acquired(0, {"orders": "id-1"}, {TP: (Owned(WHOLE, ALONE),)}, progress, {})
    assert decision == Decision(replace(QUERY, owning=Owning(acquired)))


AGED = replace(LOG, bounds={TP: Bounds(30, 100)}, reached={TP: 100})


AGED_TEXT = "orders-0: records 20-29 are gone before they were read"


def test_lost__move_on_and_warn() -> None:
    decision = decided(standalone.take_positions, replace(QUERY, log=AGED), ours(at(10, 20), fail_on_data_loss=False))
    logged = Losses(logged=(Aged(TP, 20, 30),))
    assert decision == Decision(owns(30, log=AGED, losses=logged), (LogLine(f"lost records: {AGED_TEXT}"),))


def test_lost_again_while_the_query_is_idle__no_second_line() -> None:
    state = replace(QUERY, log=AGED, losses=Losses(logged=(Aged(TP, 20, 30),)))
    decision = decided(standalone.take_positions, state, ours(at(10, 20), fail_on_data_loss=False))
    assert decision == Decision(owns(30, log=AGED, losses=state.losses))


def test_the_log_was_cut_under_an_older_leader_epoch__move_back() -> None:
    state = replace(QUERY, log=replace(LOG, bounds={TP: Bounds(0, 100, 4)}))
    start = at(10, 20, leader_epochs={TP: 3})
    answer = (ReadEpochEnds({TP: 3}), {TP: 15})
    decision = decided(standalone.take_positions, state, ours(start, fail_on_data_loss=False), answer)
    assert decision.state.owning == owns(15).owning


def shorter(since_ms: int, *, believed: bool = False) -> State:
    """The log ends at 15 since then."""
    log = replace(LOG, bounds={TP: Bounds(0, 15)}, reached={TP: 20}, low={TP: Low(-1, since_ms, believed=believed)})
    return replace(QUERY, log=log)


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_the_log_ends_before_a_position__leave_it_alone_and_look_again(fail_on_data_loss: bool) -> None:
    start, mark = ours(at(10, 20), fail_on_data_loss=fail_on_data_loss), (ReadHighWatermarks((TP,)), {TP: 15})
    decision = decided(standalone.take_positions, shorter(NOW - LOW_MS + 1), start, mark)
    assert decision.state == replace(shorter(NOW - LOW_MS + 1), owning=owns(20).owning)
    assert ends_of(decision.state) == {TP: 0}


def test_a_transaction_is_open_below_a_position__nothing_is_lost() -> None:
    decision = decided(standalone.take_positions, shorter(0), ours(at(10, 20)), (ReadHighWatermarks((TP,)), {TP: 20}))
    assert (decision.state.owning, decision.state.log.low) == (owns(20).owning, {})
    assert ends_of(decision.state) == {TP: 15}


def test_the_log_ends_before_a_position_for_seconds__data_loss() -> None:
    state, mark = shorter(NOW - LOW_MS), (ReadHighWatermarks((TP,)), {TP: 15})
    words = "orders-0: the log ends at 15, before the position 20"
    assert decided(standalone.take_positions, state, ours(at(10, 20)), mark) == Decision(
        state, (), fails(DataLossError, words)
    )


def test_the_log_ends_before_a_position_for_seconds__move_back_and_stay_there() -> None:
    """The start names the lost offsets until a batch has passed them."""
    start, mark = ours(at(10, 20), fail_on_data_loss=False), (ReadHighWatermarks((TP,)), {TP: 15})
    state = shorter(NOW - LOW_MS)
    for _ in range(2):
        state = decided(standalone.take_positions, state, start, mark).state
        assert (state.owning, ends_of(state)) == (owns(15).owning, {TP: 15})


def test_nothing_to_read__no_offset() -> None:
    state = owns(100, pace=Pacing(idle=({}, {})))
    assert decided(standalone.look_closer, state, ours()) == Decision(state, (), Return(None))


@pytest.mark.parametrize(
    ("topic", "outcome"),
    [
        pytest.param(ORDERS, Decision(QUERY).outcome, id="the same: plan"),
        pytest.param(RECREATED, LookAgain(), id="recreated: look again"),
    ],
)
def test_something_to_read__look_at_the_topics_first(topic: Any, outcome: Any) -> None:
    decision = decided(standalone.look_closer, owns(10), ours(), (ReadTopics(), {"orders": topic}))
    log = replace(LOG, topics={"orders": topic}, beginnings=None)
    if topic != ORDERS:
        log = replace(log, reached={}, bounds={})
    assert decision == Decision(owns(10, log=log), (), outcome)


def test_before_a_batch_is_read__look_at_the_topics() -> None:
    decision = decided(standalone.see_topics_again, QUERY, ours(), (ReadTopics(), {"orders": ORDERS}))
    assert decision == Decision(replace(QUERY, log=replace(LOG, beginnings=None)))


def test_a_batch__is_packed() -> None:
    offset = at(10, 20)
    assert decided(standalone.return_tasks, QUERY, ours(offset)) == asks(QUERY, Pack(offset, offset))
    packed = Pack(offset, offset), ((),)
    assert decided(standalone.return_tasks, QUERY, ours(offset), packed) == Decision(QUERY, (), Return(((),)))


class EndlessLog:
    """A world without Redis, whose log has ten more records at each look; the clock stands still."""

    def __init__(self) -> None:
        self.settings, self.end = GroupSettings(""), 0

    def now_ms(self) -> int:
        return NOW

    def answer(self, request: Request[Any], caller: object) -> Any:
        if request.kind is ReadTopics:
            return {"orders": ORDERS}
        if request.kind is ReadLogEnds:
            self.end += 10
            return {TP: Bounds(0, self.end)}
        if request.kind is Grant:
            return Allowance(request.arguments["work"], (), Cutting(1))
        return None


def test_many_batches__only_the_last_one_is_unconfirmed() -> None:
    """The member forgets completed batches: a query runs for months."""
    world, start = EndlessLog(), at(0)
    turns = Turns(replace(QUERY, log=replace(LOG, bounds={}, reached={})), cast(World, world), cast(Clock, world))
    for _ in range(3):
        start = turns.run(standalone.NEXT_OFFSET, ours(start))
    assert turns.state.evidence.unconfirmed == (at(20, 30),)
