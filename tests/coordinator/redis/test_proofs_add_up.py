"""Proofs of several members add up within the recovering session (rule: proofs-add-up)."""

from collections.abc import Mapping

import pytest

from coordinator.errors import StateLostError
from coordinator.progress.ownership import Fact
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller, Proof
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition
from coordinator.values.verdicts import Absent, Lost, Replaced
from store_world import NO_MEMBER, OTHER, SESSION, TOPICS, TP, World

ON_EACH_SERVER = True
LOWER, UPPER = cuts(2)
MINE = Caller(founding="aa")


def recovers(world: World, *proofs: tuple[HashRange, int], caller: Caller = MINE, reset: int = 0) -> bool:
    """Whether the group is there after a member's recovery with these proofs of the partition."""
    proven: Mapping[TopicPartition, Proof] = {TP: tuple(Fact(h, position) for h, position in proofs)}
    return not world.store.positions.recover(caller, "bb", "gone", reset, TOPICS, proven)


def test_two_halves_are_a_whole_proof(world: World) -> None:
    assert not recovers(world, (LOWER, 40))
    with pytest.raises(Absent):
        world.store.positions.status()
    assert recovers(world, (UPPER, 50))
    assert world.positions() == {str(LOWER): "40", str(UPPER): "50"}
    assert world.store.positions.stable(["orders"]) == {TP: 40}
    assert world.store.positions.status().founding == "aa"
    assert not world.redis.exists(GroupKeys(world.group).proofs)


def test_of_two_proofs_of_one_hash_the_higher_one_counts(world: World) -> None:
    assert not recovers(world, (LOWER, 40))
    assert not recovers(world, (LOWER, 30))
    assert recovers(world, (LOWER, 35), (UPPER, 50))
    assert world.positions() == {str(LOWER): "40", str(UPPER): "50"}


def test_a_session_without_a_whole_proof__state_lost(world: World) -> None:
    assert not recovers(world, (LOWER, 40))
    world.lapse(SESSION - 1)
    assert not recovers(world, (LOWER, 40))
    world.lapse(1)
    with pytest.raises(StateLostError, match="orders-0"):
        recovers(world, (LOWER, 40))


def test_a_caller_without_any_proof_does_not_wait(world: World) -> None:
    with pytest.raises(StateLostError, match="orders-0"):
        recovers(world)
    with pytest.raises(StateLostError, match="orders-0"):
        world.store.positions.recover(NO_MEMBER, "bb", "gone", 0, TOPICS, {TP: None})
    assert world.redis.keys(GroupKeys(world.group).prefix + "*") == []


def test_no_group_is_created_while_proofs_wait(world: World) -> None:
    assert not recovers(world, (LOWER, 40))
    with pytest.raises(Lost, match="proofs is not"):
        world.store.positions.create("cc", TOPICS, {TP: 99})


def test_proofs_of_two_groups_do_not_add_up(world: World) -> None:
    assert not recovers(world, (LOWER, 40))
    with pytest.raises(Replaced, match="aa"):
        recovers(world, (UPPER, 50), caller=Caller(founding="ff"))


def test_proofs_of_an_older_reset_do_not_add_up(world: World) -> None:
    assert not recovers(world, (LOWER, 40))
    assert not recovers(world, (UPPER, 50), reset=7)
    assert recovers(world, (LOWER, 10), reset=7)
    assert world.positions() == {str(LOWER): "10", str(UPPER): "50"}


def test_a_partition_that_redis_does_not_know_and_two_members_have_read(world: World) -> None:
    """The member that recovered reads another topic or partition."""
    world.store.positions.recover(MINE, "bb", "gone", 0, TOPICS, {OTHER: 7})
    assert not recovers(world, (LOWER, 40))
    assert world.positions() == {}
    assert recovers(world, (UPPER, 50))
    assert world.positions() == {str(LOWER): "40", str(UPPER): "50"}
    assert world.store.positions.stable(["orders"]) == {TP: 40, OTHER: 7}


def test_proofs_that_wait_expire(world: World) -> None:
    assert not recovers(world, (LOWER, 40))
    left = world.redis.pttl(GroupKeys(world.group).proofs)
    assert isinstance(left, int)
    assert 0 < left <= 2 * SESSION
