"""One application reads a group alone, in a real Redis (rule: one-application)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from coordinator.redis.group_state import STANDBY, WORKING
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller
from coordinator.values import verdicts
from store_world import SESSION, TP, WANTED, World, lane, offset

ON_EACH_SERVER = True
LEASE_OVER = SESSION + 1


def join(world: World, member: str, alone: str = "", life: str = "i1", **how: Any) -> Caller:
    return world.joining(member, life, alone=alone, **how)


@pytest.mark.parametrize("alone", ["", "a"])
def test_members_of_one_application_read_together(founded: World, alone: str) -> None:
    """Both reads of a join of streams, for example; and all members of a group that is shared."""
    first = join(founded, "m-1", alone)
    join(founded, "m-2", alone)
    assert founded.store.members.look(first).value.members == ("m-1", "m-2")


CALLS: dict[str, Callable[[World, Caller], object]] = {
    "look": lambda world, me: world.store.members.look(me),
    "acquire": lambda world, me: world.store.positions.acquire(me, WANTED),
    "authorize": lambda world, me: world.store.positions.authorize(me, offset(lane("aa.1", 0, 10))),
}


@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("a", ""), ("", "b")])
def test_a_member_whose_lease_ended_reads_nothing_beside_the_next_one(
    founded: World, verb: str, first: str, second: str
) -> None:
    slept = join(founded, "m-1", first)
    founded.lapse(LEASE_OVER)
    join(founded, "m-2", second)
    with pytest.raises(verdicts.Rejoin):
        CALLS[verb](founded, slept)


@pytest.mark.parametrize(
    ("between", "missed"),
    [
        pytest.param("b", True, id="another one read alone in between"),
        pytest.param(None, False, id="nobody read"),
        pytest.param("", False, id="queries that share are not known by name"),
    ],
)
def test_a_checkpoint_comes_back_unless_another_one_has_read(founded: World, between: str | None, missed: bool) -> None:
    join(founded, "m-1", "a")
    founded.lapse(LEASE_OVER)
    if between is not None:
        join(founded, "m-2", between)
        founded.lapse(LEASE_OVER)
    if missed:
        with pytest.raises(verdicts.Missed):
            join(founded, "m-1", "a", "i2", returns=True)
        assert join(founded, "m-3", "c").nonce, "a new checkpoint has no state that could lack records"
    else:
        assert join(founded, "m-1", "a", "i2", returns=True).nonce


def test_a_life_that_shares_comes_back_after_one_that_read_alone(founded: World) -> None:
    slept = join(founded, "m-1")
    founded.lapse(LEASE_OVER)
    join(founded, "m-2", "b")
    with pytest.raises(verdicts.Alone):
        join(founded, "m-1", before=slept.nonce)
    founded.lapse(LEASE_OVER)
    assert join(founded, "m-1", before=slept.nonce).nonce == slept.nonce


def test_a_standby_waits_beside_it_and_takes_over(founded: World) -> None:
    owner = join(founded, "m-1", "a")
    founded.assign(owner, {owner.member: WANTED})
    standby = join(founded, "m-2", "b", role=STANDBY)
    assert founded.store.members.look(standby).value.role == STANDBY
    founded.lapse(LEASE_OVER)
    assert founded.store.members.look(standby).value.role == WORKING
    with pytest.raises(verdicts.Rejoin):
        founded.store.members.look(owner)
    with pytest.raises(verdicts.Missed):
        join(founded, "m-1", "a", before=owner.nonce)


@pytest.mark.parametrize("has_read", [False, True])
def test_a_standby_that_has_read_before_another_one_ends_instead_of_taking_over(founded: World, has_read: bool) -> None:
    """For example a member whose lease ended, and whose successor died."""
    owner = join(founded, "m-1", "a")
    founded.assign(owner, {owner.member: WANTED})
    standby = join(founded, "m-2", "b", role=STANDBY, returns=has_read)
    founded.lapse(LEASE_OVER)
    if has_read:
        with pytest.raises(verdicts.Missed):
            founded.store.members.look(standby)
    else:
        assert founded.store.members.look(standby).value.role == WORKING


def test_a_spare_whose_batches_were_empty_takes_over(founded: World) -> None:
    """Spark runs an empty batch at the start of each query."""
    owner = join(founded, "m-1", "a")
    founded.assign(owner, {owner.member: WANTED})
    standby = join(founded, "m-2", "b", role=STANDBY)
    founded.store.positions.authorize(standby, offset())
    founded.lapse(LEASE_OVER)
    assert founded.store.members.look(standby).value.role == WORKING


def test_a_standby_that_has_read_in_an_earlier_life_ends(founded: World) -> None:
    owner = join(founded, "m-1", "a")
    founded.assign(owner, {owner.member: WANTED})
    (mine,) = founded.store.positions.acquire(owner, WANTED).value.ownership[TP]
    founded.store.positions.authorize(owner, offset(lane(mine.epoch, 0, 10)))
    founded.lapse(LEASE_OVER)
    founded.assign(join(founded, "m-2", "b"), {"m-2": WANTED})
    again = join(founded, "m-1", "a", "i2", role=STANDBY)
    founded.lapse(LEASE_OVER)
    with pytest.raises(verdicts.Missed):
        founded.store.members.look(again)


def test_after_a_recovery_too_a_life_that_slept_ends(founded: World) -> None:
    """Its heartbeat knows no offset; the nonce is another one."""
    join(founded, "m-1", "a")
    founded.lapse(LEASE_OVER)
    join(founded, "m-2", "b")
    founded.lapse(LEASE_OVER)
    with pytest.raises(verdicts.Missed):
        join(founded, "m-1", "a", before="an earlier nonce")


def test_a_member_that_slept_is_not_in_the_way_of_the_one_that_reads(founded: World) -> None:
    slept = join(founded, "m-1", "a")
    founded.lapse(LEASE_OVER)
    reader = join(founded, "m-2", "b")
    founded.store.members.heartbeat(slept)
    assert join(founded, "m-2", "b", before=reader.nonce).nonce == reader.nonce


def test_the_same_member_is_named_however_the_leases_end(founded: World) -> None:
    """Else a query that waits never sees that the lease of one member grows."""
    first, second = join(founded, "m-1"), join(founded, "m-2")
    for beats in (first, second, first):
        founded.store.members.heartbeat(beats)
        with pytest.raises(verdicts.Alone) as refused:
            join(founded, "m-3", "c")
        assert refused.value.member == "m-1"
        founded.lapse(10)


def test_a_join_of_two_reads_starts_again_beside_its_former_life(founded: World) -> None:
    """The name of two reads is that of the running query, and the first of them joins before the other is fenced."""
    for member in ("m-1", "m-2"):
        join(founded, member, "query 1")
    for member in ("m-1", "m-2"):
        assert join(founded, member, "query 2", "i2").nonce


def test_a_member_that_stands_by_again_reads_nothing_beside_the_one_that_works(founded: World) -> None:
    owner = join(founded, "m-1", "a")
    founded.assign(owner, {owner.member: WANTED})
    (mine,) = founded.store.positions.acquire(owner, WANTED).value.ownership[TP]
    planned = offset(lane(mine.epoch, 0, 10))
    assert founded.store.positions.authorize(owner, planned).value.owned
    standby = join(founded, "m-2", "b", role=STANDBY)
    founded.redis.hset(GroupKeys(founded.group).standbys, "m-1", STANDBY)
    assert founded.store.members.look(standby).value.role == WORKING
    assert founded.store.positions.authorize(owner, replace(planned, early=1)).value.owned == {TP: ()}


def test_only_one_standby_takes_over_from_several_lost_members(founded: World) -> None:
    """They shared the group; a standby that reads alone works by itself."""
    for member in ("m-1", "m-2"):
        first = join(founded, member)
    founded.assign(first, {"m-1": WANTED, "m-2": {TP: ()}})
    for member in ("m-3", "m-4"):
        standby = join(founded, member, member, role=STANDBY)
    founded.lapse(LEASE_OVER)
    for member in ("m-3", "m-4"):
        standby = join(founded, member, member, role=STANDBY)
    founded.store.members.look(standby)
    roles = founded.redis.hvals(GroupKeys(founded.group).standbys)
    assert sorted(roles) == [STANDBY, WORKING]


def test_a_standby_that_worked_waits_again_if_another_one_works(founded: World) -> None:
    """It shares, so its checkpoint lacks nothing."""
    for member in ("m-1", "m-2"):
        founded.redis.hset(GroupKeys(founded.group).standbys, member, WORKING)
    other = join(founded, "m-2", "b", role=WORKING)
    join(founded, "m-1", role=WORKING)
    assert founded.store.members.look(other).value.role == WORKING
    assert founded.redis.hget(GroupKeys(founded.group).standbys, "m-1") == STANDBY
