"""Scripts refuse a caller that knows another founding of the group (rule: one-founding)."""

import pytest

from coordinator.progress.ownership import Fact
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Topic
from coordinator.values.verdicts import Recovering
from store_world import NO_MEMBER, OTHER, SESSION, TOPICS, TP, World

ON_EACH_SERVER = True


def claim(world: World, founding: str) -> None:
    offset = StreamOffset(world.group, "m-1", 0, {"orders": "id-1"}, founding=founding)
    world.store.positions.claim(offset, {TP: (Fact(WHOLE, 50),)})


def test_a_claim_of_this_founding_counts_also_after_a_recovery(world: World) -> None:
    world.found(p0=5)
    world.redis.hset(GroupKeys(world.group).meta, "run_id", "0")
    world.store.positions.recover(NO_MEMBER, "bb", "restarted", 0, TOPICS, {TP: None})
    claim(world, "aa")
    assert world.positions() == {str(WHOLE): "50"}


def test_a_recovery_of_nothing_that_nothing_names_is_a_founding(world: World) -> None:
    world.store.positions.recover(NO_MEMBER, "bb", "gone", 0, TOPICS, {TP: 9})
    assert world.store.positions.status().founding == "bb"


def test_a_caller_that_proves_nothing_places_no_partition_while_the_group_recovers(world: World) -> None:
    world.store.positions.create("aa", {"orders": Topic("orders", "id-1", (0,))}, {TP: 5})
    world.redis.hset(GroupKeys(world.group).meta, "run_id", "0")
    world.store.positions.recover(NO_MEMBER, "bb", "restarted", 0, TOPICS, {TP: None})
    with pytest.raises(Recovering):
        world.store.positions.create("", TOPICS, {OTHER: 9})
    assert world.store.positions.create("", TOPICS, {OTHER: 7}, founding="aa").value == 1
    world.lapse(SESSION)
    assert world.store.positions.create("", TOPICS, {OTHER: 9}).value == 0
