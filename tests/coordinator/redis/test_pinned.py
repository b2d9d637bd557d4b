"""Pinned members in a real Redis: held, spare, taken, freed, mixed (rule: pinned-or-assigned)."""

import pytest

from coordinator.errors import StateFormatError
from coordinator.progress.ownership import completed
from coordinator.redis.group_state import GroupState
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller, Joining
from coordinator.redis.snapshot import read_group
from coordinator.values import verdicts
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition
from store_world import FIELDS, LOWER, OTHER, SESSION, TOPICS, TP, UPPER, WANTED, World, lane, offset

ON_EACH_SERVER = True
Q1, Q2, Q3, Q4 = cuts(4)


def group(world: World) -> GroupState:
    return read_group(world.client, world.group)


def owns(world: World, member: str, tp: TopicPartition = TP) -> tuple[HashRange, ...]:
    return tuple(hashes for hashes, _, owner in group(world).owners.get(tp, ()) if owner == member)


def acquire(world: World, me: Caller, *ranges: HashRange) -> None:
    """What a member does at its next batch: it looks, and acquires its ranges."""
    assert world.store.members.look(me).value.mine == {TP: ranges}
    world.store.positions.acquire(me, {TP: ranges})


def held_by(world: World, member: str, *ranges: HashRange) -> str:
    """The member that is in the way of a pinned one."""
    with pytest.raises(verdicts.Held) as held:
        world.pin(member, *ranges)
    assert (held.value.lease_end_ms, held.value.now_ms) == (
        world.redis.zscore(GroupKeys(world.group).leases, held.value.member),
        world.now,
    )
    return held.value.member


def test_a_pinned_member_is_assigned_its_ranges_and_computes_none(founded: World) -> None:
    me = founded.pin("m-1", LOWER)
    look = founded.store.members.look(me).value
    assert (look.mine, look.occasion, look.members, look.protocol) == ({TP: (LOWER,)}, "", (), "")
    assert (look.generation, group(founded).meta["protocol"]) == (1, "pinned")
    acquire(founded, me, LOWER)
    assert owns(founded, "m-1") == (LOWER,)


def test_each_join_is_a_new_generation_so_members_look_again_what_they_own(founded: World) -> None:
    one = founded.pin("m-1", LOWER)
    founded.pin("m-2", UPPER)
    assert founded.store.members.look(one).value.generation == 2


def test_the_same_hashes_of_another_partition_hold_nobody(founded: World) -> None:
    founded.pin("m-1", LOWER)
    founded.pin("m-2", LOWER, tp=OTHER)


def test_a_spare_calls_first_after_an_outage__it_takes_over_only_if_the_owner_stays_away(founded: World) -> None:
    """Rule: outage-grace."""
    one = founded.pin("m-1", LOWER)
    for stays_away in (False, True):
        founded.now += 2 * SESSION
        assert held_by(founded, "m-2", LOWER) == "m-1"
        founded.now += SESSION // 2
        assert held_by(founded, "m-2", LOWER) == "m-1"
        if not stays_away:
            founded.store.members.heartbeat(one)
        founded.now += 1
    founded.pin("m-2", LOWER)


def test_a_spare_takes_over_at_the_position_when_the_lease_has_ended(founded: World) -> None:
    one, _ = founded.pin("m-1", LOWER), founded.pin("m-3", UPPER)
    acquire(founded, one, LOWER)
    end = offset(lane("aa.1", 0, 7, LOWER))
    founded.store.positions.commit(one, end, completed(end))
    founded.lapse(SESSION)
    assert held_by(founded, "m-2", LOWER) == "m-1"
    founded.lapse(1)
    spare = founded.pin("m-2", LOWER)
    acquire(founded, spare, LOWER)
    assert owns(founded, "m-2") == (LOWER,)
    assert founded.positions() == {str(LOWER): "7", str(UPPER): "0"}
    with pytest.raises(verdicts.Rejoin):
        founded.store.members.look(one)
    assert held_by(founded, "m-1", LOWER) == "m-2"


def test_a_member_that_leaves_keeps_its_claim_to_the_end_of_its_lease(founded: World) -> None:
    """Its next life commits the unconfirmed batch. A spare that took the claim would read nothing meanwhile."""
    one = founded.pin("m-1", LOWER)
    acquire(founded, one, LOWER)
    founded.store.members.leave(one, {TP: (Q1,)})
    assert owns(founded, "m-1") == (Q1,)
    assert held_by(founded, "m-2", LOWER) == "m-1"
    acquire(founded, founded.pin("m-1", LOWER, incarnation="i2"), LOWER)
    assert owns(founded, "m-1") == (Q1, Q2)


def test_a_spare_takes_over_at_once_from_a_member_that_left_with_all_its_batches_confirmed(founded: World) -> None:
    one = founded.pin("m-1", LOWER)
    acquire(founded, one, LOWER)
    founded.store.members.leave(one, {TP: ()})
    acquire(founded, founded.pin("m-2", LOWER), LOWER)
    assert owns(founded, "m-2") == (LOWER,)


def test_the_hashes_of_a_member_that_leaves_are_unread(founded: World) -> None:
    one = founded.pin("m-1", LOWER)
    acquire(founded, one, LOWER)
    founded.store.members.leave(one, {TP: (Q1,)})
    founded.pin("m-2", UPPER)
    assert founded.events("unread")[1:] == [f"no pinned member reads {TP.topic}-0 {LOWER}"]


def test_an_assigned_member_releases_only_to_a_member_that_waits(founded: World) -> None:
    me = founded.join()
    founded.store.positions.acquire(me, WANTED)
    assert founded.store.members.release(me, {TP: (UPPER,)}).value == 0


def test_a_member_may_change_its_kind_when_it_starts_again(founded: World) -> None:
    founded.join("m-1")
    founded.pin("m-1", LOWER, incarnation="i2")
    founded.join("m-1", "i3")


def test_a_pinned_member_voids_the_assignment_of_members_that_are_gone(founded: World) -> None:
    old = founded.join("m-1")
    look = founded.store.members.look(old).value
    assert founded.store.members.assign(old, look.occasion, "test 1", {"m-1": WANTED}).value == 1
    founded.lapse(SESSION + 1)
    founded.pin("m-2", LOWER)
    assert group(founded).assignment == {"m-2": {TP: (LOWER,)}}
    assert group(founded).meta.keys().isdisjoint({"occasion", "leader", "failure"})


def test_a_member_whose_lease_had_ended_joins_again_if_the_group_is_of_the_other_kind_now(founded: World) -> None:
    old = founded.join("m-1")
    founded.lapse(SESSION + 1)
    pinned = founded.pin("m-2", LOWER)
    founded.store.members.heartbeat(old)
    with pytest.raises(verdicts.Rejoin):
        founded.store.members.look(old)
    with pytest.raises(verdicts.Held):
        founded.join("m-1", "i1", "aa")
    founded.lapse(SESSION + 1)
    assigned = founded.join("m-1", "i1", "aa")
    founded.store.members.heartbeat(pinned)
    with pytest.raises(verdicts.Rejoin):
        founded.store.members.look(pinned)
    assert held_by(founded, "m-2", LOWER) == "m-1"
    assert founded.store.members.look(assigned).value.mine == {}


def test_a_member_that_has_lost_its_claim_holds_nobody(founded: World) -> None:
    """Its lease may run again by a heartbeat, before it looks and joins again."""
    one = founded.pin("m-1", LOWER)
    founded.lapse(SESSION + 1)
    founded.pin("m-2", LOWER)
    founded.outlive(one)
    founded.pin("m-3", LOWER)


def test_a_pause_beyond_the_lease_costs_nothing_if_nobody_claims_the_ranges(founded: World) -> None:
    one = founded.pin("m-1", LOWER)
    acquire(founded, one, LOWER)
    founded.lapse(SESSION + 1)
    founded.pin("m-2", UPPER)
    acquire(founded, one, LOWER)
    assert {epoch for hashes, epoch, _ in group(founded).owners[TP] if hashes == LOWER} == {"aa.1"}


def test_only_the_named_hashes_count_at_the_end_of_available_now(founded: World) -> None:
    me = founded.pin("m-1", LOWER)
    acquire(founded, me, LOWER)
    end = offset(lane("aa.1", 0, 5, LOWER))
    founded.store.positions.commit(me, end, completed(end))
    finish = founded.store.members.finish
    assert not finish(me, {TP: 5}).value
    assert not finish(me, {TP: 5}, {TP: (LOWER, Q3)}).value
    assert not finish(me, {TP: 6}, {TP: (LOWER,)}).value
    assert finish(me, {TP: 5}, {TP: (LOWER,)}).value
    assert group(founded).leaving == {"m-1"}


def test_the_hashes_that_no_working_member_names_are_an_event(founded: World) -> None:
    founded.pin("m-1", Q1, Q3)
    founded.pin("m-2", Q2)
    founded.pin("m-3", Q4)
    no_member, p = "no pinned member reads ", f"{TP.topic}-0"
    assert founded.events("unread") == [f"{no_member}{p} {Q2}, {p} {Q4}", f"{no_member}{p} {Q4}"]
    founded.lapse(SESSION + 1)
    founded.pin("m-4", LOWER)
    assert founded.events("unread")[2:] == [f"{no_member}{p} {UPPER}"]


def test_an_event_names_twenty_ranges_at_most(founded: World) -> None:
    founded.pin("m-1", *cuts(64)[::2])
    (why,) = founded.events("unread")
    assert why.count(f"{TP.topic}-0 ") == 20
    assert why.endswith(" and 12 more")


def recover(world: World) -> None:
    """A loss of all members, after which the positions are proven."""
    world.restart()
    world.store.positions.recover(Caller("m-1", "i1"), "bb", "test", 0, TOPICS, {TP: 0})


def test_after_a_loss_a_spare_waits_until_the_members_of_before_have_claimed_their_ranges_again(founded: World) -> None:
    founded.pin("m-1", LOWER)
    recover(founded)
    assert group(founded).assignment == {}
    with pytest.raises(verdicts.Recovering):
        founded.pin("m-2", LOWER)
    founded.store.members.join(Caller("m-1", "i1"), "aa", Joining(FIELDS, pinned={TP: (LOWER,)}))
    founded.lapse(SESSION)
    assert held_by(founded, "m-2", LOWER) == "m-1"


@pytest.mark.parametrize("pinned", [True, False], ids=["a pinned group", "an assigned group"])
def test_after_a_loss_new_members_of_the_other_kind_wait_too(founded: World, pinned: bool) -> None:
    """Else they join first, and the members of before fail."""

    def of_kind(ranges: bool) -> Joining:
        return Joining(FIELDS, pinned={TP: (LOWER,)} if ranges else {})

    founded.store.members.join(Caller("m-1", "i1"), "", of_kind(pinned))
    recover(founded)
    with pytest.raises(verdicts.Recovering):
        founded.store.members.join(Caller("m-2", "i2"), "", of_kind(not pinned))
    founded.store.members.join(Caller("m-1", "i1"), "aa", of_kind(pinned))
    assert group(founded).members.keys() == {"m-1"}


def test_after_a_loss_a_member_of_before_that_is_held_asserts_and_waits(founded: World) -> None:
    """Two members of before may name one hash: the first one had lost its claim to the second."""
    founded.pin("m-1", LOWER)
    founded.lapse(SESSION + 1)
    founded.pin("m-2", LOWER)
    recover(founded)
    joining = Joining(FIELDS, pinned={TP: (LOWER,)})
    founded.store.members.join(Caller("m-2", "i1"), "aa", joining)
    with pytest.raises(verdicts.Recovering):
        founded.store.members.join(Caller("m-1", "i1"), "aa", joining)
    founded.lapse(SESSION)
    with pytest.raises(verdicts.Held):
        founded.store.members.join(Caller("m-1", "i1"), "aa", joining)


def test_after_a_loss_of_all_members_a_new_one_waits_a_session(founded: World) -> None:
    recover(founded)
    founded.lapse(SESSION)
    acquire(founded, founded.pin("m-2", LOWER), LOWER)


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("{", id="no JSON"),
        pytest.param("5", id="a number"),
        pytest.param('["orders"]', id="a list of topics"),
        pytest.param('{"orders":5}', id="no partitions"),
        pytest.param('{"orders":{"0":5}}', id="no list of ranges"),
        pytest.param('{"orders":{"0":[5]}}', id="a number as a range"),
        pytest.param('{"orders":{"0":[null]}}', id="nothing as a range"),
        pytest.param('{"orders":{"0":["5-9"]}}', id="short hashes"),
        pytest.param(f'{{"orders":{{"0":["{UPPER.hi:016x}-{LOWER.lo:016x}"]}}}}', id="an inverted range"),
    ],
)
@pytest.mark.parametrize("works", [True, False], ids=["of a working member", "of a member that is gone"])
def test_damaged_ranges_of_another_member_are_an_error_that_names_the_key(
    founded: World, entry: str, works: bool
) -> None:
    founded.pin("m-1", LOWER)
    keys = GroupKeys(founded.group)
    founded.redis.hset(keys.assignment, "m-1", entry)
    founded.lapse(0 if works else SESSION + 1)
    with pytest.raises(StateFormatError, match=r"assignment|Expected"):
        founded.pin("m-2", UPPER)
    assert group_members(founded) == {"m-1"}


def group_members(world: World) -> set[str]:
    return {str(m) for m in world.redis.hkeys(GroupKeys(world.group).assignment)}
