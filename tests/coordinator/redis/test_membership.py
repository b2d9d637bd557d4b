"""Members in a real Redis: assigned, released, taken, fenced, expired. Transition tests are named by the arrow."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.assignors.assignor import Assignment
from coordinator.progress.ownership import Owned, completed
from coordinator.redis.events import last_events
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import SETTLE_MS, Caller, Joining, Leaving, Look
from coordinator.redis.snapshot import read_group
from coordinator.redis.store import Store
from coordinator.values import verdicts
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Topic, TopicPartition
from store_world import BIG, FIELDS, OTHER, SESSION, TOPICS, TP, WANTED, World, lane, offset

ON_EACH_SERVER = True
ABSENT = -2  # PTTL of a missing key
AT_ONE_MOMENT = """
local times = redis.call('TIME')
for _, key in ipairs(KEYS) do times[#times + 1] = redis.call('PTTL', key) end
return times
"""


def test_a_second_member_of_one_application_is_busy_until_the_lease_ends(world: World) -> None:
    world.found()
    world.join(application="driver")
    world.join("m-3", "i3", application="another driver")
    with pytest.raises(verdicts.Busy) as busy:
        world.join("m-2", "i2", application="driver")
    assert (busy.value.member, busy.value.lease_end_ms) == ("m-1", world.now + SESSION)
    world.lapse(SESSION + 1)
    world.join("m-2", "i2", application="driver")


def assigned(world: World, caller: Caller, assignment: Assignment) -> int:
    look = world.store.members.look(caller).value
    return world.store.members.assign(caller, look.occasion, "test 1", assignment).value


LATE = "an occasion that has passed"
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


@pytest.mark.parametrize("call", RENEWING.values(), ids=RENEWING)
def test_each_verb_whose_answer_renews_the_lease_renews_it_in_redis(
    world: World, call: Callable[[Store, Caller, str], object]
) -> None:
    """Otherwise a member plans within a lease that has ended (rule: plan-within-lease)."""
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    occasion = world.store.members.look(me).value.occasion
    world.lapse(SESSION - 1)
    call(world.store, me, occasion)
    assert world.redis.zscore(GroupKeys(world.group).leases, "m-1") == world.now + SESSION


def test_an_assignment_is_due_when_members_or_topics_have_changed_and_then_no_more(world: World) -> None:
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


def test_the_first_assignment_recorded_wins(world: World) -> None:
    world.found()
    one, two = world.join(), world.join("m-2", "i2")
    occasion = world.store.members.look(one).value.occasion
    assert world.store.members.assign(two, occasion, "test 1", {"m-2": WANTED}).value == 1
    assert world.store.members.assign(one, occasion, "test 1", {"m-1": WANTED}).value == 0
    assert world.store.members.assignment() == {"m-2": WANTED}


def test_an_assignment_for_members_of_which_one_has_left_since_is_not_recorded(world: World) -> None:
    world.found()
    one, two = world.join(), world.join("m-2", "i2")
    look = world.store.members.look(one).value
    world.store.members.leave(two, {})
    assert world.store.members.assign(one, look.occasion, "test 1", {"m-1": {}, "m-2": WANTED}).value == 0
    assert world.store.members.assignment() == {}


def test_no_assignment_counts_on_a_member_that_leaves_and_waits_for_the_end_of_its_lease(world: World) -> None:
    world.found()
    one, two = world.join(), world.join("m-2", "i2")
    world.store.positions.acquire(two, WANTED)
    assert world.store.members.leave(two, {TP: (WHOLE,)}) == 1
    assert world.store.members.look(one).value.members == ("m-1",)


def test_in_partition_order_a_partition_that_is_owned_whole_gets_one_lane_epoch(world: World) -> None:
    """Rule: partition-order."""
    world.found()
    one, two = world.join("m-1", "i1"), world.join("m-2", "i2")
    lower, upper = cuts(2)
    acquire = world.store.positions.acquire
    acquire(one, {TP: (lower,)})
    acquire(two, {TP: (upper,)})
    assert acquire(one, WANTED, {"orders"}).value.ownership == {TP: (Owned(lower, "aa.1"),)}, "the rest has an owner"
    world.lapse(SESSION + 1)
    world.store.members.heartbeat(one)
    world.lapse(SESSION - 1)
    assert acquire(one, WANTED).value.ownership == {TP: (Owned(lower, "aa.1"), Owned(upper, "aa.3"))}
    assert acquire(one, WANTED, {"returns"}).value.ownership == {TP: (Owned(lower, "aa.1"), Owned(upper, "aa.3"))}
    assert acquire(one, WANTED, {"orders"}).value.ownership == {TP: (Owned(WHOLE, "aa.4"),)}
    assert acquire(one, WANTED, {"orders"}).value.ownership == {TP: (Owned(WHOLE, "aa.4"),)}, "once"


def test_owned_to_released_to_acquired_one_range_at_a_time(world: World) -> None:
    world.found()
    one = world.join()
    world.store.positions.acquire(one, WANTED)
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


def test_nothing_is_released_to_a_member_that_is_gone_or_leaving(world: World) -> None:
    world.found()
    one = world.join()
    world.store.positions.acquire(one, WANTED)
    assigned(world, one, {"m-9": WANTED})
    assert world.store.members.release(one, WANTED).value == 0
    two = world.join("m-2", "i2")
    assigned(world, two, {"m-2": WANTED})
    assert world.store.members.finish(two, {TP: 0}).value is True
    assert world.store.members.release(one, WANTED).value == 0
    assert [member for _, _, member in read_group(world.client, world.group).owners[TP]] == ["m-1"]


def test_a_batch_longer_than_the_longest_makes_ranges_takeable_though_the_heart_beats(world: World) -> None:
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


def test_targets_of_available_now_are_raised_to_those_of_the_others(world: World) -> None:
    world.found()
    first = Joining({}, targets={TP: 10, OTHER: 30})
    second = Joining({}, targets={TP: 20, OTHER: BIG})
    assert world.store.members.join(Caller("m-1", "i1"), "", first).value.targets == {TP: 10, OTHER: 30}
    assert world.store.members.join(Caller("m-2", "i2"), "", second).value.targets == {TP: 20, OTHER: BIG}
    assert world.store.members.join(Caller("m-3", "i3"), "", first).value.targets == {TP: 20, OTHER: BIG}


def test_a_call_that_arrives_after_the_members_next_one_changes_nothing(world: World) -> None:
    """Its client abandoned the call long ago, and Redis still ran it."""
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


def test_a_new_life_fences_the_old_one_in_every_verb(world: World) -> None:
    world.found()
    old = world.join()
    world.store.positions.acquire(old, WANTED)
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


def test_leaving_keeps_unconfirmed_ranges_until_the_lease_ends(world: World) -> None:
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    _, upper = cuts(2)
    assert world.store.members.leave(me, {TP: (upper,)}) == 1
    state = read_group(world.client, world.group)
    assert state.owners == {TP: ((upper, "aa.1", "m-1"),)}
    assert state.leases_ms == {"m-1": world.now + SESSION}


STOPPED, CUT_OFF = Leaving.of("", 0), Leaving.of("a task on h2 has not stopped", 0)


@pytest.mark.parametrize(
    ("leaving", "ends_ms"),
    [
        pytest.param(STOPPED, SETTLE_MS, id="all tasks have stopped: others wait a moment"),
        pytest.param(Leaving.of("", 1_500), SETTLE_MS - 1_500, id="less if the end took a while already"),
        pytest.param(Leaving.of("", 9_000), 0, id="never less than nothing"),
        pytest.param(CUT_OFF, 3 * SETTLE_MS, id="a task may read on: others wait for the lease"),
    ],
)
def test_others_wait_for_unconfirmed_ranges_as_long_as_the_leave_says(
    world: World, leaving: Leaving, ends_ms: int
) -> None:
    """Rule: leave-keeps-unconfirmed. A lease of three times the moment."""
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    key = GroupKeys(world.group)
    world.redis.zadd(key.leases, {"m-1": world.now + 3 * SETTLE_MS})
    world.redis.hset(key.meta, "session_ms", str(3 * SETTLE_MS))
    assert world.store.members.leave(me, WANTED, leaving) == 1
    state = read_group(world.client, world.group)
    assert state.leases_ms == {"m-1": world.now + ends_ms}
    assert state.leaving == {"m-1"}
    assert last_events(world.client, world.group, 1)[0].why.endswith(
        f"wait for the end of the lease: {leaving.writers}"
    )


def test_a_leave_lengthens_no_lease(world: World) -> None:
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    world.store.members.leave(me, WANTED, STOPPED)
    assert read_group(world.client, world.group).leases_ms == {"m-1": world.now + SESSION}


@pytest.mark.parametrize("unconfirmed", [WANTED, {TP: ()}], ids=["in a batch", "between batches"])
def test_the_slices_of_a_member_that_left_in_order_are_no_evidence(world: World, unconfirmed: Ranges) -> None:
    """Rule: strike-needs-evidence. Neither its next life nor another member strikes them."""
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    world.store.poison.working(me, f"orders 0 {WHOLE} 0-9;")
    world.store.members.leave(me, unconfirmed, STOPPED)
    world.lapse(2 * SESSION)
    world.store.poison.strike("m-1")
    world.join(incarnation="i2")
    assert world.store.poison.strikes() == ()


def test_finish_checks_the_hashes_of_every_owner(world: World) -> None:
    world.found(p0=5, p1=7)
    me = world.join()
    assert world.store.members.finish(me, {TP: 5, OTHER: 8}).value is False
    assert world.store.members.finish(me, {TP: 5, OTHER: 7}).value is True


def test_finish_tells_others_the_targets_that_were_not_known_at_the_join(world: World) -> None:
    world.found(p0=5, p1=7)
    one = world.aiming("m-1", {TP: 5})
    two = world.aiming("m-2", {TP: 6})
    assert world.store.members.finish(one, {TP: 5, OTHER: 8}).value is False
    assert world.store.members.look(two).value.targets == {TP: 6, OTHER: 8}


def test_the_whole_group_expires_at_one_moment_after_the_lease(world: World) -> None:
    world.found()
    me = world.join()
    world.store.positions.acquire(me, WANTED)
    world.store.positions.report_ends({TP: 9}, {})
    world.store.members.heartbeat(me)
    named = GroupKeys(world.group)
    keys = [*named.all([TP]), named.member("m-1")]
    seconds, microseconds, *left = cast(list[int], world.redis.eval(AT_ONE_MOMENT, len(keys), *keys))
    moments = {ms + int(seconds) * 1000 + int(microseconds) // 1000 for ms in left if ms != ABSENT}
    assert max(moments) - min(moments) <= 1, "a millisecond begins between the clock and the key's own"
    assert world.now + SESSION + 60_000 - 1 <= max(moments) <= world.now + SESSION + 60_000 + 1


def test_a_member_that_leaves_computes_nothing_for_the_others(world: World) -> None:
    world.found()
    one, two = world.join("m-1"), world.join("m-2", "i2")
    world.store.positions.acquire(one, WANTED)
    world.store.members.leave(one, {TP: (WHOLE,)})
    assert world.store.members.look(one).value.occasion == ""
    assert world.store.members.look(two).value.members == ("m-2",)


def lived(joined_at: str = "") -> Joining:
    return Joining(FIELDS, joined_at=joined_at)


@pytest.mark.parametrize("emptied", [False, True])
def test_an_earlier_life_that_wakes_up_at_another_nonce_is_fenced(world: World, *, emptied: bool) -> None:
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


def test_a_later_life_that_joins_again_after_its_predecessor_woke_up_stays_the_later_one(world: World) -> None:
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
