"""Broken promises in the simulation if drivers of one checkpoint, or losses, overlap."""

from contextlib import closing
from dataclasses import replace

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.errors import RedisUnavailableError
from coordinator.progress.failing import FailingRecord
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.replies import Caller, Joining
from coordinator.redis.store import store_of
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import Topic, TopicPartition
from coordinator.values.verdicts import Fenced
from simulation.failing import LONGEST_DELAY_MS, bounded
from simulation.kafka import HASHES, JOINED, KEYS, TOPIC, Record, SimulatedKafka
from simulation.promises import (
    Attempt,
    joined_hashes_are_in_one_task,
    joined_hashes_have_one_owner,
    no_more_than_before,
    nothing_confirmed,
)
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


@pytest.mark.parametrize(("lost", "repeated"), [(BATCH, None), (("c1", 1), RECORD)])
def test_only_the_last_batch_of_a_driver_that_is_killed_may_repeat_in_peace(
    lost: tuple[str, int], repeated: Record | None
) -> None:
    sink = Sink(Visible.RECORD, lambda _: False, lambda _, __: False)
    sink.write(RECORD)
    sink.complete(*BATCH, [RECORD])
    sink.unconfirmed.add(lost)
    sink.complete(*OTHER_BATCH, [RECORD])
    assert sink.repeated == repeated


@pytest.mark.parametrize(("again", "alone"), [((BATCH[0], BATCH[1] + 1), RECORD), (("another", 1), None)])
def test_a_restart_of_redis_lets_only_another_query_repeat(again: tuple[str, int], alone: Record | None) -> None:
    sink = Sink(Visible.RECORD, lambda _: False, lambda _, __: False)
    sink.write(RECORD)
    sink.complete(*BATCH, [RECORD])
    sink.complete(*again, [RECORD])
    assert (sink.repeated, sink.repeated_by_one) == (RECORD, alone)


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


PARTNER = TopicPartition(JOINED, 0)
LOWER, UPPER = cuts(2)
BOTH = (TOPIC, JOINED)


def owned(orders: str, payments: str) -> State:
    return State(owners={TP: ((WHOLE, "n.1", orders),), PARTNER: ((WHOLE, "n.2", payments),)})


@pytest.mark.parametrize(
    ("seen", "holds"),
    [
        pytest.param([owned("m", "m")], True, id="it owns both"),
        pytest.param([owned("m", "other")], False, id="another member owns the other topic"),
        pytest.param([owned("m", "other"), owned("m", "m")], True, id="it acquired the other topic in the call"),
        pytest.param([owned("m", "other"), owned("other", "m")], False, id="one after the other"),
        pytest.param([State()], False, id="nobody owns them"),
    ],
)
def test_a_hash_of_joined_topics_is_planned_by_the_owner_of_both(seen: list[State], holds: bool) -> None:
    if holds:
        joined_hashes_have_one_owner(ALL, "m", seen, BOTH)
        return
    with pytest.raises(Broken, match="JOINED: m plans hash"):
        joined_hashes_have_one_owner(ALL, "m", seen, BOTH)


def part(tp: TopicPartition, hashes: HashRange) -> Slice:
    return Slice(tp, hashes, OffsetRange(2, 3))


def test_a_hash_of_joined_topics_is_in_one_task() -> None:
    together = [[part(TP, LOWER), part(PARTNER, LOWER)], [part(TP, UPPER), part(PARTNER, UPPER)]]
    assert joined_hashes_are_in_one_task(together) == len(HASHES)
    assert joined_hashes_are_in_one_task([[part(TP, WHOLE)], [part(TopicPartition(JOINED, 1), WHOLE)]]) == 0
    with pytest.raises(Broken, match=r"JOINED: tasks \[0, 1\] read hash"):
        joined_hashes_are_in_one_task([[part(TP, WHOLE)], [part(PARTNER, UPPER)]])


def test_a_failing_key_waits_for_the_longest_delay_at_most() -> None:
    record = FailingRecord(TP, 5, 7, 1, LONGEST_DELAY_MS + 10)
    late = State(failing={(TP, 5): record})
    bounded(State(), late, 10)
    bounded(late, late, 0)  # it was in time when it was written
    with pytest.raises(Broken, match="DELAY"):
        bounded(State(), late, 9)


def test_offsets_without_a_record_are_no_records() -> None:
    kafka = SimulatedKafka(1, BOTH)
    kafka.produce(TP, KEYS[0])
    kafka.leave_stretch(TP, 2_000)
    kafka.leave_hole(TP)
    kafka.produce(TP, KEYS[1])
    assert kafka.ends() == {TP: 2_003, PARTNER: 0}
    assert [r.offset for r in kafka.read(Slice(TP, WHOLE, OffsetRange(0, 2_003)))] == [0, 2_002]
    assert [r.offset for r in kafka.between(TP, 1, 2_002)] == []
    assert all(kafka.aged(r) for r in kafka.logs[TP][1:2_002])
