"""Filters in the simulation: how they are drawn, and broken promises about them."""

import pytest

import filter_oracle
from coordinator.redis.keys import GroupKeys
from coordinator.values.record_filter import EVERYTHING, RecordFilter
from simulation.filters import Filters, kept
from simulation.kafka import KEYS, SimulatedKafka
from simulation.sink import Sink, Violation, Visible
from simulation.world import Valkey, World

SEEDS = range(200)


def log() -> SimulatedKafka:
    kafka = SimulatedKafka(1)
    (tp,) = kafka.logs
    for key in (*KEYS, None) * 2:
        kafka.produce(tp, key)
    return kafka


def all_filters() -> list[RecordFilter]:
    return [f for seed in SEEDS for f in Filters(seed, may_change=True)._pool]


def test_the_drawn_filters_keep_the_records_of_the_definition() -> None:
    (records,) = log().logs.values()
    found = [kept(f, records) for f in all_filters()]
    wanted = [[r for r in records if filter_oracle.keeps(f, r.key, b"", r.offset)] for f in all_filters()]
    assert found == wanted
    assert any(0 < len(some) < len(records) for some in found)


def test_a_part_of_the_schedules_has_filters_and_a_part_of_these_changes_them() -> None:
    drawn = [Filters(seed, may_change=True) for seed in SEEDS]
    assert 0 < sum(f.changes for f in drawn) < sum(map(bool, drawn)) < len(SEEDS)
    assert not any(Filters(seed, may_change=False).changes for seed in SEEDS)


def test_a_change_takes_another_filter_for_drivers_that_start_later() -> None:
    filters = next(f for f in (Filters(seed, may_change=True) for seed in SEEDS) if f.changes)
    before = filters.current
    filters.change()
    assert filters.drawn(quiet=True) == filters.current != before


def test_a_dropped_record_is_done_and_may_come_late() -> None:
    (records,) = log().logs.values()
    first, second = (r for r in records if r.key == KEYS[1])
    sink = Sink(Visible.RECORD, lambda _: False, lambda _, __: False)
    sink.complete("c1", 0, [], [first])
    assert sink.dropped(first)
    sink.write(second)
    sink.write(first)
    assert not sink.dropped(first)


@pytest.mark.server
@pytest.mark.parametrize(
    ("filter_before", "lease_end", "broken"),
    [
        pytest.param("A", 1, True, id="another member lives"),
        pytest.param("A", -1, False, id="the lease of the other member has ended"),
        pytest.param("B", 1, False, id="the filter stays"),
    ],
)
def test_a_filter_that_changes_beside_a_live_member_is_found(
    redis_url: str, filter_before: str, lease_end: int, *, broken: bool
) -> None:
    valkey = Valkey(redis_url)
    world = World(valkey, seed=0)
    try:
        keys = GroupKeys(world.group)
        valkey.text.hset(keys.meta, mapping={"nonce": "n", "run_id": "1", "filter": filter_before})
        world.server.watch()
        now = world.server.now_ms
        valkey.text.hset(keys.meta, "filter", "B")
        valkey.text.zadd(keys.leases, {"m-1": now + lease_end, "m-2": now + 1})
        if broken:
            with pytest.raises(Violation, match="FILTER"):
                world.server.watch()
        else:
            world.server.watch()
    finally:
        world.close()
        valkey.close()


def test_an_empty_filter_keeps_everything() -> None:
    (records,) = log().logs.values()
    assert kept(EVERYTHING, records) == records
