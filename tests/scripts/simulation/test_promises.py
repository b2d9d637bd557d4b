"""Broken promises in the simulation if drivers of one checkpoint, or losses, overlap."""

from contextlib import closing
from dataclasses import replace

import pytest

from coordinator.errors import RedisUnavailableError
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.ranges import WHOLE, OffsetRange
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.store import store_of
from coordinator.replies import Caller, Joining
from coordinator.settings import GroupSettings
from coordinator.subscription import Topic, TopicPartition
from coordinator.verdicts import Fenced
from simulation.kafka import HASHES, KEYS, TOPIC, Record
from simulation.promises import Attempt, no_more_than_before, nothing_confirmed
from simulation.redis_server import Line
from simulation.sink import Sink, Visible
from simulation.sink import Violation as Broken
from simulation.state import State
from simulation.world import Valkey, World

TP = TopicPartition(TOPIC, 0)
RECORD = Record(TP, 2, HASHES[0], KEYS[0])
ALL = StreamOffset("g", "m", lanes={TP: (Lane(WHOLE, "n.1", 2, (OffsetRange(2, 3),)),)})
BATCH, OTHER_BATCH = ("c1", 0), ("c2", 0)


def states(*positions: int) -> list[State]:
    return [State(segments={TP: ((WHOLE, p),)}) for p in positions]


@pytest.mark.parametrize(
    "positions",
    [
        pytest.param((2, 2), id="not confirmed by any driver"),
        pytest.param((2, 4), id="it was confirmed meanwhile"),
        pytest.param((4, 2), id="a loss has taken it back"),
        pytest.param((4, 2, 6), id="a loss took it back for a while"),
    ],
)
def test_a_record_may_be_planned_that_was_unconfirmed_at_some_time_of_the_call(positions: tuple[int, ...]) -> None:
    nothing_confirmed([RECORD], states(*positions))


@pytest.mark.parametrize("positions", [(3,), (4, 3, 6)])
def test_a_record_that_stayed_confirmed_is_not_planned(positions: tuple[int, ...]) -> None:
    with pytest.raises(Broken, match="REPEAT"):
        nothing_confirmed([RECORD], states(*positions))


def attempt_at(before: Attempt, asked: int, readable: StreamOffset) -> None:
    no_more_than_before(before, asked, readable)


def test_a_driver_that_asked_before_its_heir_may_begin_after_it_with_more() -> None:
    batch = Attempt()
    attempt_at(batch, 7, replace(ALL, lanes={}))
    attempt_at(batch, 3, ALL)
    with pytest.raises(Broken, match="REPLAY"):
        attempt_at(batch, 8, ALL)


def test_a_later_attempt_reads_no_more_than_an_earlier_one() -> None:
    batch = Attempt()
    attempt_at(batch, 7, ALL)
    with pytest.raises(Broken, match="REPLAY"):
        attempt_at(batch, 3, replace(ALL, lanes={}))


def test_a_record_of_a_completed_batch_stays_done_when_an_acknowledgement_is_refused() -> None:
    sink = Sink(Visible.RECORD, lambda _: False, lambda _, __: False)
    sink.write(RECORD)
    sink.confirm([RECORD], BATCH)
    sink.complete(*BATCH, [RECORD])
    sink.take_back([RECORD], BATCH)
    assert RECORD in sink.completed
    assert sink.repeated is None


def test_a_record_that_only_a_refused_batch_acknowledged_is_not_done() -> None:
    sink = Sink(Visible.RECORD, lambda _: False, lambda _, __: False)
    sink.write(RECORD)
    sink.confirm([RECORD], BATCH)
    sink.take_back([RECORD], BATCH)
    sink.take_back([RECORD], OTHER_BATCH)
    assert RECORD not in sink.completed


def test_a_goodbye_that_was_refused_is_no_leave_and_one_whose_answer_was_lost_is(redis_url: str) -> None:
    with closing(Valkey(redis_url)) as valkey, closing(World(valkey, seed=0)) as world:
        server, settings, joining = world.server, GroupSettings(world.group), Joining({"topics": TOPIC})
        first, second = (Line(server, lambda _: None) for _ in range(2))
        stores = [store_of(ScriptCalls.of(line, settings, now=lambda: server.now_ms)) for line in (first, second)]
        server.unreliable = 0.0
        stores[0].positions.create("aa", {TOPIC: Topic(TOPIC, "id-1", (0,))}, {TP: 0})
        stores[0].members.join(Caller("m-1", "one"), "", joining)
        stores[1].members.join(Caller("m-1", "two"), "", joining)
        with pytest.raises(Fenced):
            stores[0].members.leave(Caller("m-1", "one", "aa"), {})
        server.unreliable, server.fates = 1.0, ("lost",)
        with pytest.raises(RedisUnavailableError):
            stores[1].members.leave(Caller("m-1", "two", "aa"), {})
        assert "leave" not in first.done
        assert second.done["leave"] == server.seen["scripts"]
