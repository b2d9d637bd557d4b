"""Schedules with replica sets: drawn, each set a group of its own, moves in virtual time."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from simulation import redundancy
from simulation.redundancy import _TimedLine
from simulation.world import Valkey, World

pytestmark = pytest.mark.server


@pytest.fixture
def world(redis_url: str) -> Iterator[World]:
    """The first schedule with replica sets."""
    with closing(Valkey(redis_url)) as valkey:
        made = next(w for w in (World(valkey, seed) for seed in range(200)) if w.redundant)
        redundancy.spread(made)
        yield made
        made.close()


def test_a_set_is_a_group_of_its_own_over_the_same_logs(world: World) -> None:
    first, second = world.sets
    assert second.group == f"{first.group}@2"
    assert second.kafka.logs is first.kafka.logs
    assert second.kafka.group_offsets is not first.kafka.group_offsets
    assert second.sink is not first.sink
    assert second.server.keys.meta != first.server.keys.meta
    assert second.server.seen is first.server.seen


def test_redis_has_the_virtual_time_also_for_the_hold_of_a_set(world: World) -> None:
    world.server.unreliable = 0.0
    world.scheduler.now_ms = 4_000_000_000_250
    line = _TimedLine(world.server, lambda _: None)
    with line.reading() as plain:
        assert plain.time() == (4_000_000_000, 250_000)
        assert plain.set(world.server.keys.chosen, "1", nx=True, px=500)
    for later_ms, free in ((499, False), (1, True)):
        world.scheduler.now_ms += later_ms
        with line.reading() as plain:
            assert bool(plain.set(world.server.keys.chosen, "1", nx=True, px=500)) is free
