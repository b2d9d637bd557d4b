"""A Redis that refuses writes, or is gone: the outage has its limit, says its cause, and ends with the cure."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.errors import RedisNotReadyError, RedisUnavailableError
from coordinator.member.query import Query
from coordinator.member.service import Service
from coordinator.member.turns import SILENT_MS
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, TestClock, batch, batches, records, subscribed
from own_valkey import OwnValkey
from streams import keyed
from topics import Kafka

MAX_OUTAGE_MS = 20_000
WANTS = {
    "too few replicas": ({"min_replicas_to_write": "1"}, {"min_replicas_to_write": "0"}),
    "memory is full": ({"maxmemory": "1"}, {"maxmemory": "0"}),
}
"""What the server then lacks: settings that refuse writes, and those that take them again."""


@dataclass
class CuredClock(TestClock):
    """A wait moves the clock. After some time the server is as it should be."""

    __test__ = False
    sick_until_ms: int = 10**15
    cured: dict[str, str] | None = None
    server: OwnValkey | None = None

    def wait(self, ms: int) -> None:
        super().wait(1)
        self.skip(ms)
        if self.now_ms() >= self.sick_until_ms and self.cured and self.server:
            self.server.configure(**self.cured)
            self.cured = None


@pytest.fixture
def clock(valkey: OwnValkey) -> CuredClock:
    return CuredClock(server=valkey)


@pytest.fixture
def members(kafka: Kafka, valkey: OwnValkey, group: str, clock: CuredClock) -> Iterator[Group]:
    made = Group(kafka, valkey.address, group, clock)
    yield made
    made.close()


@pytest.fixture
def want() -> str:
    return "memory is full"


def member(members: Group, tp: TopicPartition) -> Service:
    settings = GroupSettings(members.name, capacity=2, session_ms=3_000, max_outage_ms=MAX_OUTAGE_MS)
    return members.service(subscribed(tp), settings=settings)


def started(service: Service, members: Group) -> StreamOffset:
    """The first batch of a query that starts."""
    service.check_store(members.client.require_noeviction)
    service.check_policies()
    service.first_positions()
    return batch(service, StreamOffset(members.name))


@pytest.mark.parametrize("want", WANTS)
def test_a_start_ends_by_name_within_the_limit_and_was_not_silent(
    members: Group,
    tp: TopicPartition,
    valkey: OwnValkey,
    want: str,
    clock: CuredClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    valkey.configure(**WANTS[want][0])
    began = clock.now_ms()
    with pytest.raises(RedisNotReadyError, match=rf"{want}.*longer than redisMaxOutage \(20000 ms\)"):
        started(member(members, tp), members)
    assert clock.now_ms() - began < MAX_OUTAGE_MS + 5_000
    lines = [r.getMessage() for r in caplog.records if "has waited for" in r.getMessage()]
    assert 1 <= len(lines) <= 3
    assert all(want in line for line in lines)
    assert int(re.findall(r"waited for (\d+) s", lines[0])[0]) * 1_000 <= SILENT_MS + 4_000


def planning(members: Group, tp: TopicPartition) -> tuple[Service, StreamOffset]:
    """A member at work, and the end of a batch that it has planned."""
    service = member(members, tp)
    end = started(service, members)
    members.kafka.produce(tp.topic, keyed(3))
    return service, service.next_offset(end, UNLIMITED) or end


CALLS: dict[str, Callable[[Service, StreamOffset], object]] = {
    "check_store": lambda service, _: service.check_store(lambda: service._turns._world.store.reports.event("x", "y")),
    "first_positions": lambda service, _: service.first_positions(),
    "set_targets": lambda service, _: service.set_targets(),
    "next_offset": lambda service, end: service.next_offset(end, UNLIMITED),
    "tasks": lambda service, end: service.tasks(end),
    "settle": lambda service, end: service.settle(end),
}
"""The calls of Spark."""

ONLY_READ = {"first_positions", "set_targets"}
"""Those that have nothing to write in a group that has its positions."""

BY_A_DELETION = "tasks", "memory is full"
"""Redis refuses no write of a script whose first write frees memory."""

OF_THREADS = {"heartbeat", "leave", "end_task", "agreed_ends", "no_task_connects", "receive"}
"""Of the heartbeat thread, of tasks, and the end: they send once, or only what may be lost."""

OF_STATE = {"singly", "failing_of", "behind_latest", "log_ends", "check_policies"}
"""They read the state alone; `check_policies` asks only for a query that demands parts, by the steps of the others."""


def test_every_call_of_a_member_is_in_these_lists() -> None:
    methods = {n for kind in (Service, Query) for n, value in vars(kind).items() if callable(value) and n[0] != "_"}
    assert methods == {*CALLS, *OF_THREADS, *OF_STATE}


@pytest.mark.parametrize("call", CALLS)
def test_no_call_waits_for_10_s_of_a_gone_redis_without_a_line__and_none_without_an_end(
    members: Group,
    tp: TopicPartition,
    valkey: OwnValkey,
    clock: CuredClock,
    call: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    service, planned = planning(members, tp)
    valkey.stop()
    began = clock.now_ms()
    with pytest.raises(RedisUnavailableError, match=r"longer than redisMaxOutage \(20000 ms\)"):
        CALLS[call](service, planned)
    assert clock.now_ms() - began < MAX_OUTAGE_MS + 5_000
    lines = [r.getMessage() for r in caplog.records if "has waited for" in r.getMessage()]
    assert 1 <= len(lines) <= 3
    assert int(re.findall(r"waited for (\d+) s", lines[0])[0]) < 10


REPLICA = "it is a replica"


@pytest.mark.parametrize("refusal", ["memory is full", REPLICA])
@pytest.mark.parametrize("call", CALLS)
def test_no_call_waits_for_10_s_of_a_redis_that_refuses_writes_without_a_line__and_none_without_an_end(
    members: Group,
    tp: TopicPartition,
    valkey: OwnValkey,
    clock: CuredClock,
    call: str,
    refusal: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A call that has nothing to write is answered."""
    service, planned = planning(members, tp)
    if refusal == REPLICA:
        valkey.follow_nobody()
    else:
        valkey.configure(**WANTS[refusal][0])
    began = clock.now_ms()
    try:
        CALLS[call](service, planned)
    except RedisNotReadyError as error:
        assert re.search(rf"{refusal}.*longer than redisMaxOutage \(20000 ms\)", error.what)
        assert clock.now_ms() - began < MAX_OUTAGE_MS + 5_000
        lines = [r.getMessage() for r in caplog.records if "has waited for" in r.getMessage()]
        assert 1 <= len(lines) <= 3
        assert all(refusal in line for line in lines)
        assert int(re.findall(r"waited for (\d+) s", lines[0])[0]) < 10
    else:
        assert call in ONLY_READ or (call, refusal) == BY_A_DELETION
        assert clock.now_ms() - began < 1_000


def test_it_goes_on_at_the_next_try_after_the_cure(
    kafka: Kafka, members: Group, tp: TopicPartition, valkey: OwnValkey, want: str, clock: CuredClock
) -> None:
    service = member(members, tp)
    end = started(service, members)
    kafka.produce(tp.topic, keyed(3))
    valkey.configure(**WANTS[want][0])
    began = clock.now_ms()
    clock.sick_until_ms, clock.cured = began + 15_000, WANTS[want][1]
    rest = list(batches(service, end))
    assert records(*rest) == {(tp.topic, offset) for offset in (5, 6, 7)}
    assert clock.now_ms() - began < 15_000 + 3_000
