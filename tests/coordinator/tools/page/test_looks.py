"""Looks at a real Redis: at most one a second, with the lag over time, and with log ends of Kafka if wanted."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest

from coordinator.errors import UnknownGroupError
from coordinator.redis.client import RedisClient
from coordinator.tools.operations.log_ends import EndsOfKafka
from coordinator.tools.page import looks as looks_of_page
from coordinator.tools.page.looks import FRESH_S, Looks
from coordinator.values.subscription import TopicPartition
from kafka_logs import kafka_log
from streams import keyed
from topics import Kafka
from watched_groups import live

pytestmark = pytest.mark.server


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def client(redis_url: str) -> Iterator[RedisClient]:
    with closing(RedisClient(redis_url)) as made:
        yield made


def test_a_look_serves_all_questions_of_a_second(client: RedisClient, redis_url: str, group: str) -> None:
    live(redis_url, group, "orders")
    looks = Looks(client, clock=(clock := Clock()))
    first = looks.of(group)
    assert looks.of(group) is first
    clock.now += FRESH_S
    assert looks.of(group) is not first
    assert [lag for _, lag in looks.lags(group)] == [0, 0]


def test_only_the_last_points_of_the_lag_are_kept(
    client: RedisClient, redis_url: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks_of_page, "POINTS", 20)
    live(redis_url, group, "orders")
    looks = Looks(client, clock=(clock := Clock()))
    for _ in range(25):
        looks.of(group)
        clock.now += FRESH_S
    assert len(looks.lags(group)) == 20


def test_the_log_ends_are_those_of_kafka(client: RedisClient, redis_url: str, group: str, kafka: Kafka) -> None:
    topic = kafka.create_topic("looked-at")
    live(redis_url, group, topic)
    kafka.produce(topic, keyed(12))
    with closing(kafka_log(kafka.bootstrap)) as log, closing(EndsOfKafka(log)) as ends:
        assert Looks(client, ends).of(group).state.ends == {TopicPartition(topic, 0): 12}


def test_kafka_is_away__the_ends_that_a_member_saw_last_and_the_reason(
    client: RedisClient, redis_url: str, group: str
) -> None:
    live(redis_url, group, "orders")
    log = kafka_log("127.0.0.1:1", {"bootstrap_timeout_ms": 200}, patience_ms=0)
    with closing(log), closing(EndsOfKafka(log)) as ends:
        look = Looks(client, ends).of(group)
    assert look.state.ends == {TopicPartition("orders", 0): 5}
    assert look.trouble.startswith("KAFKA_UNAVAILABLE: ")


def test_an_unknown_group(client: RedisClient, group: str) -> None:
    looks = Looks(client)
    with pytest.raises(UnknownGroupError):
        looks.of(group)
    assert looks.lags(group) == []
