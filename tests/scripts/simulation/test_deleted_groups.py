"""The simulation judges a group that an operator deleted, and that a member brought back with its founding."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from coordinator.redis.calls import ScriptCalls
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.positions import RedisPositions
from coordinator.values.subscription import Topic, TopicPartition
from simulation.kafka import KEYS, TOPIC
from simulation.redis_server import Line
from simulation.sink import Violation
from simulation.world import Valkey, World

TP = TopicPartition(TOPIC, 0)
TOPICS = {TOPIC: Topic(TOPIC, "id-1", (0,))}


@pytest.fixture
def world(redis_url: str) -> Iterator[World]:
    """A group at the beginning of a log with unread records."""
    with closing(Valkey(redis_url)) as valkey, closing(World(valkey, seed=0)) as made:
        for _ in range(5):
            made.kafka.produce(TP, KEYS[0])
        placed(made, 0)
        yield made


def placed(world: World, position: int) -> None:
    """A query writes its first position; the founding is that of before."""
    calls = ScriptCalls(Line(world.server, lambda _: None), world.group, now=lambda: world.server.now_ms)
    RedisPositions(calls).create("aa", TOPICS, {TP: position})


def test_a_deleted_group_begins_where_the_next_query_places_it(world: World) -> None:
    verbs = OperatorVerbs.of_group(Line(world.server, lambda _: None), world.group, lambda: world.server.now_ms)
    verbs.delete()
    placed(world, 3)
    assert [r.offset for r in world.needed(TP, 5)] == [3, 4]


def test_a_group_that_redis_lost_owes_the_records_of_before(world: World) -> None:
    world.server.empty()
    with pytest.raises(Violation, match="AHEAD: Redis is at 3"):
        placed(world, 3)
