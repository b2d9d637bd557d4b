"""Failing records in a real Redis: written with the seal, by the owner of the hash (rule: defer-is-an-end)."""

from dataclasses import replace

import pytest

from coordinator.errors import CheckpointMismatchError, StateFormatError
from coordinator.progress.failing import FailingRecord
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Sealed
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import Topic
from failing_records import EARLY, KEY, RECORD, TO_7, reading
from store_world import OTHER, TOPICS, TP, World

ON_EACH_SERVER = True


@pytest.mark.parametrize(
    ("ahead_ms", "waits_ms"),
    [
        pytest.param(0, 0, id="at once"),
        pytest.param(5_000, 5_000, id="within the longest delay"),
        pytest.param(5_001, 5_000, id="the clock of the task's host is ahead"),
        pytest.param(30 * 86_400_000, 5_000, id="... by a month"),
    ],
)
def test_no_key_waits_longer_than_the_longest_delay_by_the_clock_of_redis(
    world: World, ahead_ms: int, waits_ms: int
) -> None:
    me = reading(world)
    store = world.store_with(delay_ms=5_000)
    record = replace(RECORD, next_ms=world.now + ahead_ms, message="two\nlines 7 8")
    store.positions.seal(me, EARLY.digest, TO_7, (record,))
    assert store.poison.failing() == (replace(record, next_ms=world.now + waits_ms),)


def test_a_seal_of_another_batch_writes_no_failing_record(world: World) -> None:
    me = reading(world)
    following = replace(EARLY, early=2)
    world.store.positions.authorize(me, following)
    assert not world.store.positions.seal(me, EARLY.digest, TO_7, (RECORD,)).value
    assert world.store.poison.failing() == ()


def test_the_next_attempt_replaces_the_record(world: World) -> None:
    me = reading(world)
    world.store.positions.seal(me, EARLY.digest, TO_7, (RECORD,))
    following, again = replace(EARLY, early=2), replace(RECORD, attempts=3)
    world.store.positions.authorize(me, following)
    world.store.positions.seal(me, following.digest, TO_7, (again,))
    assert world.store.poison.failing() == (again,)
    assert len(world.events("deferred")) == 1, "one event for each key"


def test_a_record_that_was_replaced_meanwhile_is_not_removed(world: World) -> None:
    me = reading(world)
    world.store.positions.seal(me, EARLY.digest, TO_7, (RECORD,))
    assert world.store.poison.resume((replace(RECORD, attempts=1),)) == 0
    assert world.store.poison.resume((RECORD,)) == 1
    assert world.events("release") == [], "no operator released it"


@pytest.mark.parametrize(
    ("records", "target", "done"),
    [
        pytest.param([replace(RECORD, parked=True)], 10, True, id="parked at its position"),
        pytest.param([RECORD], 10, False, id="it is tried again"),
        pytest.param([replace(RECORD, parked=True, offset=8)], 10, False, id="parked further on"),
        pytest.param([replace(RECORD, parked=True, key_hash=6)], 10, False, id="another key is parked"),
        pytest.param([replace(RECORD, parked=True, tp=OTHER)], 10, False, id="of another partition"),
        pytest.param([RECORD], 7, True, id="its target is before it"),
    ],
)
def test_available_now_ends_without_parked_keys(
    world: World, records: list[FailingRecord], target: int, done: bool
) -> None:
    me = reading(world)
    k = GroupKeys(world.group)
    hashes = (HashRange(0, 4), KEY, HashRange(6, WHOLE.hi))
    world.redis.delete(k.segments(TP))
    for h, position in zip(hashes, (10, 7, 10), strict=True):
        world.redis.hset(k.segments(TP), str(h), str(position))
    for record in records:
        world.redis.hset(k.failing, record.field, record.text)
    assert world.store.members.finish(me, {TP: target}).value is done


@pytest.mark.parametrize("last", [pytest.param(8, id="behind it"), pytest.param(6, id="before it")])
def test_in_partition_order_a_parked_record_stops_its_partition__available_now_ends(world: World, last: int) -> None:
    """Rules: available-now, partition-order."""
    me = reading(world)
    k = GroupKeys(world.group)
    world.redis.delete(k.segments(TP))
    world.redis.hset(k.segments(TP), mapping={f"{HashRange(0, 5)}": "7", f"{HashRange(6, WHOLE.hi)}": str(last)})
    parked = replace(RECORD, parked=True)
    world.redis.hset(k.failing, parked.field, parked.text)
    assert not world.store.members.finish(me, {TP: 10}).value
    assert world.store.members.finish(me, {TP: 10}, in_order={"orders"}).value is (last >= parked.offset)


def test_a_log_that_was_replaced_has_no_failing_records(world: World) -> None:
    me = reading(world)
    world.store.positions.seal(me, EARLY.digest, TO_7, (RECORD,))
    elsewhere = replace(RECORD, tp=OTHER)
    world.redis.hset(GroupKeys(world.group).failing, elsewhere.field, elsewhere.text)
    world.store.positions.recreate(TOPICS, {TP: 5})
    assert world.store.poison.failing() == (elsewhere,), "the log of partition 0 was cut"
    world.store.positions.recreate({"orders": Topic("orders", "id-2", (0, 1))}, {TP: 0})
    assert world.store.poison.failing() == (), "the topic was created again"


@pytest.mark.parametrize("text", ["", "deferred", "lost 7 2 5  ", "deferred 07 2 5  ", "parked x 2 5  "])
def test_a_damaged_record_is_a_named_error(world: World, text: str) -> None:
    me = reading(world)
    world.redis.hset(GroupKeys(world.group).failing, RECORD.field, text)
    with pytest.raises(StateFormatError, match="failing"):
        world.store.poison.failing()
    with pytest.raises(StateFormatError, match="failing"):
        world.store.members.finish(me, {TP: 10})


def test_a_forged_record_is_not_written(world: World) -> None:
    me = reading(world)
    with pytest.raises(CheckpointMismatchError):
        world.store.positions.seal(me, EARLY.digest, TO_7, (replace(RECORD, offset=2**63),))
    assert world.store.poison.failing() == ()
    assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(None)
