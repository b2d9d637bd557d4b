"""The simulation judges where a partition begins that Redis had lost, also if an old copy comes first."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from coordinator.progress.mirror import entry, with_founding
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.positions import RedisPositions
from coordinator.redis.replies import Caller
from coordinator.values.subscription import Topic, TopicPartition
from simulation.kafka import KEYS, TOPIC
from simulation.redis_server import Line
from simulation.sink import Violation
from simulation.world import Valkey, World

TP = TopicPartition(TOPIC, 0)
TOPICS = {TOPIC: Topic(TOPIC, "id-1", (0,))}


@pytest.fixture
def world(redis_url: str) -> Iterator[World]:
    """Redis lost a group; then an old copy of it answers. The mirror has a newer position."""
    with closing(Valkey(redis_url)) as valkey, closing(World(valkey, seed=0)) as made:
        positions(made).create("aa", TOPICS, {TP: 0})
        made.server.copy()
        for _ in range(3):
            made.kafka.produce(TP, KEYS[0])
        made.sink.confirm(made.kafka.logs[TP], ("c1", 0))
        made.kafka.group_offsets = {TP: with_founding(entry(2, 0, "id-1", None), "aa")}
        made.server.empty()
        made.invariants.check()
        made.server.restore()
        made.invariants.check()
        yield made


def positions(world: World) -> RedisPositions:
    return RedisPositions(ScriptCalls(Line(world.server, lambda _: None), world.group, now=lambda: world.server.now_ms))


def test_a_member_recovers_an_old_copy_at_the_position_of_the_mirror(world: World) -> None:
    positions(world).recover(Caller(founding="aa"), "bb", "a copy", 0, TOPICS, {TP: 2})
    assert world.invariants.state.stable(TP) == 2


def test_a_member_may_not_go_on_at_the_position_of_the_copy(world: World) -> None:
    with pytest.raises(Violation, match=r"AGAIN: .* begins at 0, and the mirror proves 2"):
        positions(world).recover(Caller(founding="aa"), "bb", "a copy", 0, TOPICS, {})
