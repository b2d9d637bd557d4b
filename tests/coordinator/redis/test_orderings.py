"""The ordering of a group in a real Redis: who may change it, and the verdict of all others (rule: one-ordering)."""

import pytest

from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller
from coordinator.values import verdicts
from coordinator.values.ranges import offsets_of
from store_world import SESSION, TP, World

ON_EACH_SERVER = True


def join(
    world: World, member: str, incarnation: str = "i1", *, ordering: str = "none", of_filter: str = "", before: str = ""
) -> Caller:
    return world.joining(member, incarnation, before, filter=of_filter, ordering=ordering, next_nonce="bb")


def in_force(world: World) -> tuple[str, str]:
    """Ordering and filter of the group."""
    meta = GroupKeys(world.group).meta
    return str(world.redis.hget(meta, "ordering") or "key"), str(world.redis.hget(meta, "filter") or "")


@pytest.mark.parametrize(
    ("ordering", "of_filter", "verdict", "theirs"),
    [
        pytest.param("none", "b", verdicts.OtherFilter, "a", id="both differ: the filter comes first"),
        pytest.param("key", "b", verdicts.OtherFilter, "a", id="the filter differs"),
        pytest.param("none", "a", verdicts.OtherOrdering, "key", id="the ordering differs"),
        pytest.param("partition", "a", verdicts.OtherOrdering, "key", id="partitions instead of keys"),
    ],
)
def test_another_filter_or_ordering_is_refused_and_changes_nothing(
    world: World, ordering: str, of_filter: str, verdict: type[verdicts.OtherPolicy], theirs: str
) -> None:
    world.found()
    join(world, "m-1", ordering="key", of_filter="a")
    before = world.redis.hgetall(GroupKeys(world.group).meta)
    with pytest.raises(verdict) as refused:
        join(world, "m-2", ordering=ordering, of_filter=of_filter)
    assert (refused.value.theirs, refused.value.member) == (theirs, "m-1")
    assert world.redis.hgetall(GroupKeys(world.group).meta) == before
    assert not world.redis.exists(GroupKeys(world.group).member("m-2"))


def test_both_change_at_once_after_the_lease_of_the_last_member(world: World) -> None:
    world.found()
    join(world, "m-1", ordering="key", of_filter="a")
    world.lapse(SESSION + 1)
    assert join(world, "m-2", of_filter="b").nonce == "bb"
    assert in_force(world) == ("none", "b")


@pytest.mark.parametrize(("ordering", "of_filter"), [("none", "a"), ("partition", "a"), ("key", "b")])
def test_a_change_after_all_leases_have_ended_brings_no_other_member_back(
    world: World, ordering: str, of_filter: str
) -> None:
    world.found()
    for member in ("m-1", "m-2"):
        join(world, member, ordering="key", of_filter="a")
    world.lapse(SESSION + 1)
    join(world, "m-1", "i2", ordering=ordering, of_filter=of_filter)
    assert world.redis.zrangebyscore(GroupKeys(world.group).leases, world.now, "+inf") == ["m-1"]


def test_another_filter_alone_keeps_the_nonce(world: World) -> None:
    world.found()
    join(world, "m-1", ordering="key", of_filter="a")
    assert join(world, "m-1", "i2", ordering="key", of_filter="b").nonce == "aa"
    assert in_force(world) == ("key", "b")


def test_without_the_record_of_its_ordering_a_group_hands_out_nothing_until_a_member_records_it_again(
    world: World,
) -> None:
    world.found()
    me = join(world, "m-1")
    world.redis.hdel(GroupKeys(world.group).meta, "ordering")
    with pytest.raises(verdicts.Rejoin):
        world.store.positions.hand_out(me, {TP: 9}, 9, 9)
    again = join(world, "m-1", before=me.nonce)
    assert world.store.positions.hand_out(again, {TP: 9}, 9, 9).value.slices == {TP: offsets_of("0-8")}
    assert in_force(world) == ("none", "")
