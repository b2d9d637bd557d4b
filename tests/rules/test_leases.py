"""Who owns a range, and how it passes to another member: leases, lane epochs, lives (docs/protocol.md#ownership)."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from coordinator.assignment.assignors.assignor import Assignment
from coordinator.progress.ownership import Fact, Owned, completed
from coordinator.redis.events import last_events
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller, Joining, Look
from coordinator.redis.snapshot import read_group
from coordinator.redis.store import Store
from coordinator.values import verdicts
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Topic, TopicPartition
from store_world import FIELDS, SESSION, TOPICS, TP, WANTED, World, lane, offset

ON_EACH_SERVER = True

END = offset(lane("aa.1", 0, 10))
RENEWING: dict[str, Callable[[Store, Caller, str], object]] = {
    "heartbeat": lambda store, me, _: store.members.heartbeat(me),
    "look": lambda store, me, _: store.members.look(me),
    "assign": lambda store, me, occasion: store.members.assign(me, occasion, "test 1", {"m-1": WANTED}),
    "assign, too late": lambda store, me, _: store.members.assign(me, LATE, "test 1", {"m-1": WANTED}),
    "acquire": lambda store, me, _: store.positions.acquire(me, WANTED),
    "release": lambda store, me, _: store.members.release(me, WANTED),
    "finish": lambda store, me, _: store.members.finish(me, {TP: 0}),
    "finish, not yet": lambda store, me, _: store.members.finish(me, {TP: 5}),
    "abandon": lambda store, me, _: store.poison.abandon(me, {TP: (Owned(WHOLE, "aa.1"),)}),
    "authorize": lambda store, me, _: store.positions.authorize(me, END),
    "commit": lambda store, me, _: store.positions.commit(me, END, completed(END)),
    "working": lambda store, me, _: store.poison.working(me, ""),
    "forget": lambda store, me, _: store.members.forget(me, ("payments",)),
}


LATE = "an occasion that has passed"


def assigned(world: World, caller: Caller, assignment: Assignment) -> int:
    look = world.store.members.look(caller).value
    return world.store.members.assign(caller, look.occasion, "test 1", assignment).value


def lived(joined_at: str = "") -> Joining:
    return Joining(FIELDS, joined_at=joined_at)


ABSENT = -2  # PTTL of a missing key


AT_ONE_MOMENT = """
local times = redis.call('TIME')
for _, key in ipairs(KEYS) do times[#times + 1] = redis.call('PTTL', key) end
return times
"""


@pytest.mark.parametrize("call", RENEWING.values(), ids=RENEWING)
def test_plan_within_lease__each_answer_that_a_member_plans_by_renews_the_lease(
    world: World, call: Callable[[Store, Caller, str], object]
) -> None:
    """Rule: plan-within-lease.

    A member plans only within its last acknowledged lease, by the boot clock of its own host.
    """
    me = world.owner()
    occasion = world.store.members.look(me).value.occasion
    world.lapse(SESSION - 1)
    call(world.store, me, occasion)
    assert world.redis.zscore(GroupKeys(world.group).leases, "m-1") == world.now + SESSION


def test_lease_end__the_owner_stays_until_another_member_acquires(world: World) -> None:
    """Rule: lease-end.

    The end of a lease, or of the longest batch, makes ranges takeable; it does not end ownership.
    """
    me = world.owner()
    world.lapse(10 * SESSION)
    end = offset(lane("aa.1", 0, 10))
    assert world.store.positions.authorize(me, end).value.owned == {TP: (Owned(WHOLE, "aa.1"),)}
    world.lapse(10 * SESSION)
    assert world.store.positions.commit(me, end, completed(end)).value.refused == {}


def test_batch_clock__a_batch_beyond_the_longest_makes_ranges_takeable_though_the_heart_beats(world: World) -> None:
    """Rule: batch-clock.

    The clock of a batch runs from its authorisation until all its tasks have ended and have told their ends to the
    reader process.
    """
    world.found()
    one, two = world.join(), world.join("m-2", "i2")
    world.store.positions.acquire(one, WANTED)
    end = offset(lane("aa.1", 0, 10))
    world.store.positions.authorize(one, end)
    for _ in range(6):
        world.lapse(SESSION - 1)
        world.store.members.heartbeat(one, reading=True)
        world.store.members.heartbeat(two)
    assert world.store.members.look(two).value.members == ("m-2",), "the assignor passes over a hung member"
    assert world.store.positions.acquire(two, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}
    assert world.store.positions.commit(one, end, completed(end)).value.refused == completed(end)


def test_fence_by_lane_epoch__after_a_takeover_the_old_owner_is_fenced(world: World) -> None:
    """Rule: fence-by-lane-epoch. Every commit names the member's incarnation and the lane epoch of each range."""
    me = world.owner()
    world.lapse(10 * SESSION)
    other = world.join("m-2", "i2")
    assert world.store.positions.acquire(other, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}
    end = offset(lane("aa.1", 0, 10))
    assert world.store.positions.authorize(me, end).value.owned == {TP: ()}
    assert world.store.positions.commit(me, end, completed(end)).value.refused == completed(end)
    assert world.positions() == {str(WHOLE): "0"}


def test_verdict_per_hash__a_refused_lane_does_not_block_the_commit_of_the_others(world: World) -> None:
    """Rule: verdict-per-hash. A commit or an authorisation may name a lane that the member owns only in part."""
    me = world.owner()
    lower, upper = cuts(2)
    end = offset(lane("aa.1", 0, 10, lower), lane("aa.9", 0, 20, upper))
    assert world.store.positions.commit(me, end, completed(end)).value.refused == {TP: (Fact(upper, 20, "aa.9"),)}
    assert world.positions() == {str(lower): "10", str(upper): "0"}
    fence = last_events(world.client, world.group, 1)[0]
    why = "a commit left out ranges that have moved since, as after a restart; their owner reads them"
    assert (fence.kind, fence.member, fence.why, fence.ranges) == ("fence", "m-1", why, f"orders-0 {upper}")


def test_verdict_per_hash__an_authorisation_names_the_parts_that_are_still_owned(world: World) -> None:
    me = world.owner()
    lower, upper = cuts(2)
    end = offset(lane("aa.1", 0, 10, lower), lane("aa.7", 0, 10, upper))
    assert world.store.positions.authorize(me, end).value.owned == {TP: (Owned(lower, "aa.1"),)}


def test_no_epoch_twice__an_owner_that_acquires_again_keeps_its_epoch(world: World) -> None:
    """Rule: no-epoch-twice. Each acquisition of a range that its member does not own takes a new lane epoch."""
    world.found()
    me = world.join()
    first = world.store.positions.acquire(me, WANTED).value
    assert first.ownership == {TP: (Owned(WHOLE, "aa.1"),)}
    assert world.store.positions.acquire(me, WANTED).value.ownership == first.ownership


def test_no_epoch_twice__after_a_release_the_epoch_is_new(world: World) -> None:
    me = world.owner()
    assert world.store.members.leave(me, {TP: ()}) == 0
    assert world.store.positions.acquire(world.join("m-1", "i2"), WANTED).value.ownership == {
        TP: (Owned(WHOLE, "aa.2"),)
    }


def test_numbered_calls__a_call_that_arrives_after_the_next_one_changes_nothing(world: World) -> None:
    """Rule: numbered-calls. A member numbers the calls that it makes one after the other.

    Its client abandoned the call long ago, and Redis still ran it.
    """
    world.found()
    me = world.join()
    first, second, third, later = (replace(me, number=str(n)) for n in (8, 9, 10, 11))
    assigned(world, world.join("m-2", "i2"), {"m-2": WANTED})
    world.store.positions.acquire(second, WANTED)
    world.store.positions.acquire(second, WANTED)  # the client itself may send one twice
    end = offset(lane("aa.1", 0, 10))
    world.store.positions.commit(third, end, completed(end))
    with pytest.raises(verdicts.Rejoin):
        world.store.positions.authorize(second, end)  # no batch begins that would never end
    assert world.store.members.release(later, WANTED).value == 1
    with pytest.raises(verdicts.Rejoin):
        world.store.positions.acquire(first, WANTED)
    world.store.members.heartbeat(me)  # made meanwhile: it has no number
    assert read_group(world.client, world.group).owners[TP] == (), "nothing is owned that nobody knows of"
    assert not world.redis.exists(GroupKeys(world.group).batches)


def test_one_life__a_new_life_fences_the_old_one_in_every_verb(world: World) -> None:
    """Rule: one-life. The checkpoint names the member."""
    old = world.owner()
    world.join("m-1", "i2")
    end = offset(lane("aa.1", 0, 10))
    for verb in (
        lambda: world.store.members.heartbeat(old),
        lambda: world.store.positions.acquire(old, WANTED),
        lambda: world.store.positions.authorize(old, end),
        lambda: world.store.positions.commit(old, end, completed(end)),
        lambda: world.store.members.finish(old, {TP: 0}),
        lambda: world.store.members.leave(old, {TP: ()}),
        lambda: world.join("m-1", "i1", before="aa"),
    ):
        with pytest.raises(verdicts.Fenced):
            verb()
    assert world.positions() == {str(WHOLE): "0"}


@pytest.mark.parametrize("emptied", [False, True])
def test_one_life__an_earlier_life_that_wakes_up_after_a_loss_is_fenced(world: World, *, emptied: bool) -> None:
    """It joined before its replacement did, which is new at this nonce."""
    world.found()
    members, keys = world.store.members, GroupKeys(world.group)
    first = members.join(Caller("m-1", "i1"), "", lived()).value.joined_at
    if emptied:
        world.redis.delete(*world.redis.keys(keys.prefix + "*"))
    else:
        world.redis.hset(keys.meta, "run_id", "0")
    world.store.positions.recover(Caller("m-1", "i2"), "bb", "a loss", 0, TOPICS, {TP: 5})
    world.lapse(SESSION + 1)
    second = members.join(Caller("m-1", "i2"), "", lived()).value.joined_at
    assert int(second) > int(first)
    with pytest.raises(verdicts.Fenced):
        members.join(Caller("m-1", "i1"), "aa", lived(first))
    assert world.redis.hget(keys.member("m-1"), "incarnation") == "i2"


def test_one_life__a_later_one_stays_the_later_one(world: World) -> None:
    world.found()
    members = world.store.members
    first = members.join(Caller("m-1", "i1"), "", lived()).value.joined_at
    second = members.join(Caller("m-1", "i2"), "", lived()).value.joined_at
    assert int(second) == int(first) + 1, "the clock stands still"
    world.redis.hset(GroupKeys(world.group).meta, "run_id", "0")
    world.store.positions.recover(Caller("m-1", "i2"), "bb", "a loss", 0, TOPICS, {TP: 5})
    world.redis.delete(GroupKeys(world.group).member("m-1"))
    assert members.join(Caller("m-1", "i1"), "aa", lived(first)).value.joined_at == first
    assert members.join(Caller("m-1", "i2"), "aa", lived(second)).value.joined_at == second
    with pytest.raises(verdicts.Fenced):
        members.join(Caller("m-1", "i1"), "bb", lived(first))


def test_one_member_per_application__a_second_one_waits_for_the_end_of_the_lease(world: World) -> None:
    """Rule: one-member-per-application.

    An application has one live member in a group, unless allowSeveralQueries; a Spark query has one in any case.
    """
    world.found()
    world.join(application="driver")
    world.join("m-3", "i3", application="another driver")
    with pytest.raises(verdicts.Busy) as busy:
        world.join("m-2", "i2", application="driver")
    assert (busy.value.member, busy.value.lease_end_ms) == ("m-1", world.now + SESSION)
    world.lapse(SESSION + 1)
    world.join("m-2", "i2", application="driver")


def test_first_assignment_wins__the_second_one_is_told_so(world: World) -> None:
    """Rule: first-assignment-wins. The member that first sees a new occasion has the turn to compute an assignment."""
    world.found()
    one, two = world.join(), world.join("m-2", "i2")
    occasion = world.store.members.look(one).value.occasion
    assert world.store.members.assign(two, occasion, "test 1", {"m-2": WANTED}).value == 1
    assert world.store.members.assign(one, occasion, "test 1", {"m-1": WANTED}).value == 0
    assert world.store.members.assignment() == {"m-2": WANTED}


def test_first_assignment_wins__an_occasion_is_a_change_of_members_or_topics(world: World) -> None:
    world.found()
    one = world.join()
    look = world.store.members.look(one).value
    assert (look.members, look.mine, look.generation) == (("m-1",), {}, 0)
    assert assigned(world, one, {"m-1": WANTED}) == 1
    assert world.store.members.look(one).value == Look(1, WANTED, "", (), protocol="test 1")
    world.join("m-2", "i2")
    assert world.store.members.look(one).value.members == ("m-1", "m-2")
    lower, upper = cuts(2)
    assert assigned(world, one, {"m-1": {TP: (lower,)}, "m-2": {TP: (upper,)}}) == 2
    world.found(p1=0)
    assert world.store.members.look(one).value.occasion == "", "a partition that was counted before changes nothing"
    more = {"orders": Topic("orders", "id-1", (0, 1, 2))}
    world.store.positions.create("aa", more, {TopicPartition("orders", 2): 0})
    assert world.store.members.look(one).value.occasion != ""


def test_release_to_a_waiting_owner__one_range_at_a_time(world: World) -> None:
    """Rule: release-to-a-waiting-owner. Ranges move one at a time, between two batches of their owner."""
    one = world.owner()
    two = world.join("m-2", "i2")
    lower, upper = cuts(2)
    assert world.store.positions.acquire(two, {TP: (upper,)}).value.ownership == {TP: ()}, "its owner is alive"
    assert world.store.members.release(one, WANTED).value == 0, "no assignment names another owner"
    assigned(world, one, {"m-1": {TP: (lower,)}, "m-2": {TP: (upper,)}})
    assert world.store.members.release(one, {TP: (lower,)}).value == 0, "it is assigned to its owner"
    assert world.store.members.release(one, WANTED).value == 1
    assert world.store.positions.acquire(two, {TP: (upper,)}).value.ownership == {TP: (Owned(upper, "aa.2"),)}
    assert world.store.positions.acquire(one, {TP: (lower,)}).value.ownership == {TP: (Owned(lower, "aa.1"),)}
    assert list(world.positions()) == [str(lower), str(upper)], "segments are cut where ownership changes"


def test_release_to_a_waiting_owner__nothing_to_one_that_is_gone_or_leaving(world: World) -> None:
    one = world.owner()
    assigned(world, one, {"m-9": WANTED})
    assert world.store.members.release(one, WANTED).value == 0
    two = world.join("m-2", "i2")
    assigned(world, two, {"m-2": WANTED})
    assert world.store.members.finish(two, {TP: 0}).value is True
    assert world.store.members.release(one, WANTED).value == 0
    assert [member for _, _, member in read_group(world.client, world.group).owners[TP]] == ["m-1"]


def test_leave_keeps_unconfirmed__until_the_end_of_the_lease(world: World) -> None:
    """Rule: leave-keeps-unconfirmed. A member that leaves frees the ranges without an unconfirmed slice."""
    me = world.owner()
    _, upper = cuts(2)
    assert world.store.members.leave(me, {TP: (upper,)}) == 1
    state = read_group(world.client, world.group)
    assert state.owners == {TP: ((upper, "aa.1", "m-1"),)}
    assert state.leases_ms == {"m-1": world.now + SESSION}


def test_group_expiry__all_keys_expire_at_one_moment_after_the_lease(world: World) -> None:
    """Rule: group-expiry. Heartbeats push the expiry of all keys to one moment."""
    me = world.owner()
    world.store.positions.report_ends({TP: 9}, {})
    world.store.members.heartbeat(me)
    named = GroupKeys(world.group)
    keys = [*named.all([TP]), named.member("m-1")]
    seconds, microseconds, *left = cast(list[int], world.redis.eval(AT_ONE_MOMENT, len(keys), *keys))
    moments = {ms + int(seconds) * 1000 + int(microseconds) // 1000 for ms in left if ms != ABSENT}
    assert max(moments) - min(moments) <= 1, "a millisecond begins between the clock and the key's own"
    assert world.now + SESSION + 60_000 - 1 <= max(moments) <= world.now + SESSION + 60_000 + 1
