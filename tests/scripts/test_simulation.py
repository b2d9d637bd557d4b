"""The coordinator under faults: the first schedules of those that `.ci/run` runs. `scripts/simulate` replays each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import schedule_valkey
from coordinator.redis.keys import GroupKeys
from quiet import quiet
from simulation import schedules
from simulation.kafka import TOPIC
from simulation.sink import Violation
from simulation.world import Valkey, World
from verdict import require

pytestmark = pytest.mark.server
SEEDS = range(8)


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[Valkey]:
    """A separate Valkey, which nothing else slows down. The coordinator's log lines go to the trace."""
    with quiet(*schedule_valkey.TRACED), schedule_valkey.in_memory(tmp_path) as connections:
        yield connections


@pytest.mark.timeout(600)
def test_no_schedule_breaks_a_promise(valkey: Valkey) -> None:
    outcome = schedules.run(valkey, SEEDS)
    assert outcome.schedules == len(SEEDS)
    failures = [f"seed {f.seed}: {f.what}\n{f.command}" for f in outcome.failures]
    require(not failures, "\n".join(failures))


def test_a_seed_replays_exactly(valkey: Valkey) -> None:
    for seed in range(2):
        assert schedules.story(valkey, seed) == schedules.story(valkey, seed)


@pytest.mark.parametrize(
    ("promise", "key", "field", "value"),
    [
        ("AHEAD", "segments", "0000000000000000-7fffffffffffffff", "1"),
        ("TILING", "segments", "0000000000000000-7ffffffffffffffe", "0"),
        ("STABLE", "stable", "0", "1"),
    ],
)
def test_a_state_that_breaks_a_promise_is_found(valkey: Valkey, promise: str, key: str, field: str, value: str) -> None:
    world = World(valkey, seed=0)
    try:
        tp = next(iter(world.kafka.logs))
        world.kafka.produce(tp, b"")
        keys = GroupKeys(world.group)
        names = {"segments": keys.segments(tp), "owners": keys.owners(tp), "stable": keys.stable(TOPIC)}
        valkey.text.hset(names["segments"], "0000000000000000-7fffffffffffffff", "0")
        valkey.text.hset(names["stable"], "0", "0")
        world.invariants.check()
        if promise == "TILING":
            valkey.text.delete(names["segments"])
        valkey.text.hset(names[key], field, value)
        if promise == "AHEAD":
            valkey.text.hset(names["stable"], "0", "1")
        with pytest.raises(Violation, match=promise):
            world.invariants.check()
    finally:
        world.close()
