"""Tasks that end before the plan does: their true ends are sealed (docs/protocol.md#true-ends)."""

from dataclasses import replace

import pytest

from coordinator.progress.ends import Ends
from coordinator.progress.ownership import Owned
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Authorized, Sealed
from coordinator.values import verdicts
from coordinator.values.hash_map import HashMap
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition
from store_world import TP, WANTED, World, lane, offset

ON_EACH_SERVER = True
EARLY = replace(offset(lane("aa.1", 0, 10)), early=1)
TO_7: Ends = {TP: HashMap.of(WHOLE, 7)}


def test_seal_before_sink__a_seal_that_comes_after_the_next_plan_is_refused(world: World) -> None:
    """Rule: seal-before-sink. Each task reports its true ends to the reader process, which answers."""
    me = world.owner()
    world.store.positions.authorize(me, EARLY)
    world.store.positions.seal(me, EARLY.digest, {})
    following = replace(EARLY, early=2)
    assert world.store.positions.authorize(me, following).value.ends is None
    assert not world.store.positions.seal(me, EARLY.digest, TO_7).value
    assert world.store.positions.seal_of("m-1", following.digest) == Sealed(None)
    assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(unread=True)


def test_seal_before_sink__another_life_seals_no_batch(world: World) -> None:
    old = world.owner()
    world.store.positions.authorize(old, EARLY)
    world.join("m-1", "i2")
    with pytest.raises(verdicts.Fenced):
        world.store.positions.seal(old, EARLY.digest, TO_7)


def test_seal_before_sink__a_seal_is_not_one_of_a_topic_with_a_longer_name(world: World) -> None:
    me = world.owner()
    world.store.positions.authorize(me, EARLY, as_planned=True)
    ends = {TopicPartition(topic, 0): HashMap.of(WHOLE, 7) for topic in ("orders", "rs")}
    for tp, of_tp in ends.items():
        world.store.positions.seal(me, EARLY.digest, {tp: of_tp})
    assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(ends)


def test_seal_as_planned__not_if_an_earlier_life_authorised_it_unsealed(world: World) -> None:
    """Rule: seal-as-planned. A firewall may keep tasks from the reader process.

    Its plan may be long, because its tasks could end early. Each later life begins it anew.
    """
    me = world.owner()
    assert not world.store.positions.authorize(me, EARLY).value.as_planned
    later = world.join("m-1", "i2")
    for _ in range(2):  # the first answer may be lost
        answer = world.store.positions.authorize(later, EARLY, replayed=True, as_planned=True).value
        assert (answer.ends, answer.as_planned) == (None, False)


def test_seal_as_planned__each_early_end_is_added_once(world: World) -> None:
    world.found()
    me, (lower, upper) = world.join(), cuts(2)
    world.store.positions.acquire(me, WANTED)
    for _ in range(2):  # the first answer may be lost
        assert world.store.positions.authorize(me, EARLY, as_planned=True).value.as_planned
    assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed({})
    for hashes, end in ((upper, 7), (lower, 5), (upper, 7)):
        assert world.store.positions.seal(me, EARLY.digest, {TP: HashMap.of(hashes, end)}).value
    later = world.join("m-1", "i2")
    ends = world.store.positions.authorize(later, EARLY, replayed=True, as_planned=True).value.ends
    assert ends == {TP: ((lower, 5), (upper, 7))}


def test_replay_fixed__each_later_life_gets_the_sealed_ends(world: World) -> None:
    """Rule: replay-fixed. A replay of a sealed batch reads exactly to the sealed ends."""
    me = world.owner()
    owned = {TP: (Owned(WHOLE, "aa.1"),)}
    assert world.store.positions.authorize(me, EARLY).value == Authorized(owned)
    assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(None)
    assert world.store.positions.seal(me, EARLY.digest, TO_7).value
    for life in ("i2", "i3"):
        me = world.join("m-1", life)
        assert world.store.positions.authorize(me, EARLY, replayed=True).value == Authorized(owned, TO_7)
        assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(TO_7)


def test_unknown_is_beginning__after_the_entry_of_its_member_was_lost(world: World) -> None:
    """Rule: unknown-is-beginning.

    If Redis lost the entry of a member, nobody knows whether an earlier life sealed the batch.
    """
    me = world.owner()
    world.store.positions.authorize(me, EARLY)
    world.store.positions.seal(me, EARLY.digest, TO_7)
    world.redis.delete(GroupKeys(world.group).member("m-1"))
    for life in ("i2", "i3"):
        me = world.join("m-1", life)
        assert world.store.positions.authorize(me, EARLY, replayed=True).value.unknown
        assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(None)
