"""A Redis that is away for most of a minute: the member waits, commits, and goes on (rule: redis-outage)."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from coordinator.errors import RedisUnavailableError
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, TestClock, batch, batches, beating, records, subscribed
from own_valkey import OwnValkey
from streams import keyed
from topics import Kafka

SESSION_S, BEAT_S = 1.5, 0.3
SILENCE_S = 2 * SESSION_S


@dataclass
class OutageClock(TestClock):
    """While Redis is away, waits alone move the clock, and take no time. Redis is back after the outage."""

    __test__ = False
    away_ms: int = 0
    back: Callable[[], None] | None = None
    stopped_ms: int = 0

    def now_ms(self) -> int:
        return super().now_ms() if self.back is None else self.stopped_ms + self.skipped

    def wait(self, ms: int) -> None:
        if self.back is None:
            super().wait(ms)
            return
        self.skip(ms)
        self.away_ms -= ms
        if self.away_ms <= 0:
            back, self.back = self.back, None
            back()


@pytest.fixture
def clock() -> OutageClock:
    return OutageClock()


@pytest.fixture
def members(kafka: Kafka, valkey: OwnValkey, group: str, clock: OutageClock) -> Iterator[Group]:
    made = Group(kafka, valkey.address, group, clock)
    yield made
    made.close()


def go_away(valkey: OwnValkey, clock: OutageClock, ms: int) -> None:
    valkey.stop()
    clock.stopped_ms = clock.now_ms() - clock.skipped
    clock.away_ms, clock.back = ms, valkey.restart


def test_a_commit_waits_for_a_redis_that_is_away_for_55_seconds(
    kafka: Kafka, members: Group, tp: TopicPartition, valkey: OwnValkey, clock: OutageClock
) -> None:
    service, done = members.begun(subscribed(tp))
    kafka.produce(tp.topic, keyed(3))
    go_away(valkey, clock, 55_000)
    rest = list(batches(service, done))
    assert clock.away_ms <= 0, "it was waited for"
    assert records(*rest) == {(tp.topic, offset) for offset in (5, 6, 7)}, "and nothing is read twice"


def test_an_outage_beyond_the_limit_is_a_named_error(
    members: Group, tp: TopicPartition, valkey: OwnValkey, clock: OutageClock
) -> None:
    service, done = members.begun(subscribed(tp))
    go_away(valkey, clock, 70_000)
    with pytest.raises(RedisUnavailableError, match=r"longer than redisMaxOutage \(60000 ms\)"):
        service.next_offset(done, UNLIMITED)


def test_a_server_that_stands_still_for_longer_than_a_session_is_waited_for_and_nothing_is_lost(
    kafka: Kafka, members: Group, tp: TopicPartition, valkey: OwnValkey
) -> None:
    """The same server goes on: no state is lost, only the lease has ended meanwhile, and calls come late or twice."""
    service = members.started(subscribed(tp), session_ms=int(1000 * SESSION_S))
    with beating(service, BEAT_S):
        done = batch(service, StreamOffset(members.name))
        kafka.produce(tp.topic, keyed(3))
        life, began = valkey.run_id, time.monotonic()
        valkey.process.suspend()
        threading.Timer(SILENCE_S, valkey.process.resume).start()
        rest = list(batches(service, done))
    assert time.monotonic() - began >= SILENCE_S
    assert valkey.run_id == life
    assert records(*rest) == {(tp.topic, offset) for offset in (5, 6, 7)}, "and nothing is read twice"
    assert members.state.stable == {tp: 8}
    assert not {"recover", "lost", "fence"} & set(members.events)
