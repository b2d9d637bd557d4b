"""A member that paused while a member with another filter joined: its batch ends well, and it gets no other."""

from collections.abc import Callable

import pytest

from coordinator.progress.ownership import Owned, completed
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller, Sealed
from coordinator.redis.store import Store
from coordinator.values import verdicts
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import WHOLE
from store_world import LONGEST, SESSION, TP, WANTED, World, lane

ON_EACH_SERVER = True
A, B = "deny a", "deny b"
END = StreamOffset("g", "m-1", 0, {"orders": "id-1"}, {TP: (lane("aa.1", 0, 100),)}, early=1)
TO_60 = {TP: HashMap.of(WHOLE, 60)}
GRANTING: dict[str, Callable[[Store, Caller], object]] = {
    "look": lambda store, me: store.members.look(me),
    "acquire": lambda store, me: store.positions.acquire(me, WANTED),
    "authorize": lambda store, me: store.positions.authorize(me, END),
}


def paused(world: World) -> Caller:
    """It reads a batch that is sealed as planned; since then its lease ended, and another filter is in force."""
    world.found()
    me = world.filtering("m-1", A)
    world.store.positions.acquire(me, WANTED)
    assert world.store.positions.authorize(me, END, as_planned=True).value.as_planned
    world.lapse(SESSION + 1)
    world.filtering("m-2", B)
    return me


def test_another_filter_is_in_force__the_member_seals_the_true_ends_of_its_batch(world: World) -> None:
    """Else its next life would commit the planned ends, and skip the records from 60 on."""
    me = paused(world)
    assert world.store.positions.seal(me, END.digest, TO_60).value
    world.lapse(LONGEST)
    later = world.filtering("m-1", A, "i2")
    assert world.store.positions.seal_of("m-1", END.digest) == Sealed(TO_60)
    assert world.store.positions.authorize(later, END, replayed=True).value.ends == TO_60


def test_another_filter_is_in_force__the_member_commits_the_ranges_that_it_owns(world: World) -> None:
    me = paused(world)
    moved = world.store.positions.commit(me, END, completed(END), END.digest).value
    assert (moved.refused, world.positions()) == ({}, {str(WHOLE): "100"})


def test_another_filter_is_in_force__the_member_renews_its_lease_while_it_reads(world: World) -> None:
    world.store.members.heartbeat(paused(world))
    assert world.redis.zscore(GroupKeys(world.group).leases, "m-1") == world.now + SESSION


@pytest.mark.parametrize("verb", GRANTING)
def test_another_filter_is_in_force__the_member_gets_no_range_and_no_batch(world: World, verb: str) -> None:
    me = paused(world)
    before = world.redis.hgetall(GroupKeys(world.group).owners(TP))
    with pytest.raises(verdicts.Rejoin):
        GRANTING[verb](world.store, me)
    with pytest.raises(verdicts.OtherFilter):
        world.filtering("m-1", A)
    assert world.redis.hgetall(GroupKeys(world.group).owners(TP)) == before


def test_the_other_filter_is_gone__the_member_joins_with_its_own_and_keeps_its_ranges(world: World) -> None:
    paused(world)
    world.lapse(SESSION + 1)
    me = world.filtering("m-1", A)
    assert world.store.members.look(me)
    assert world.store.positions.acquire(me, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.1"),)}
