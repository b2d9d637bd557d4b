"""Who owns a range, and how it passes to another member (docs/protocol.md#ownership)."""

from typing import cast

import pytest

from coordinator.assignment.policies import UNKNOWN_POLICY, Policy
from coordinator.assignment.protocols import Agreement, Protocol, agree
from coordinator.progress.ownership import Fact, Owned, completed
from coordinator.redis.events import last_events
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller, Joining, Look
from coordinator.redis.snapshot import read_group
from coordinator.values import verdicts
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Topic, TopicPartition
from store_world import FIELDS, SESSION, TOPICS, TP, WANTED, World, lane, offset

ON_EACH_SERVER = True
V0, V1, RANGE = Protocol("mine", 0), Protocol("mine", 1), Protocol("range", 1)
ICS, ORDERS = "accept.individual.commit", "accept.range.fetch:orders"
UNREADABLE_WHY = (
    ": a member may not read the topic coop-kafka-policies. Nothing is shared, and each partition is read in order, "
    "until its Kafka user gets READ on the topic"
)
CLUSTER = Policy(refused_topics=frozenset({"orders"}))


def test_lease_end__the_owner_stays_until_another_member_acquires(world: World) -> None:
    """Rule: lease-end.

    The end of a lease, or of the longest batch, makes ranges takeable; it does not end ownership.
    """
    me = world.owner()
    world.lapse(10 * SESSION)
    end = offset(lane("aa.1", 0, 10))
    assert world.store.positions.authorize(me, end).value.owned == {TP: (Owned(WHOLE, "aa.1"),)}
    world.lapse(10 * SESSION)
    assert world.commit(me, end) == {}


def test_fence_by_lane_epoch__after_a_takeover_the_old_owner_is_fenced(world: World) -> None:
    """Rule: fence-by-lane-epoch. Every commit names the member's incarnation and the lane epoch of each range."""
    me = world.owner()
    world.lapse(10 * SESSION)
    other = world.join("m-2", "i2")
    assert world.store.positions.acquire(other, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}
    end = offset(lane("aa.1", 0, 10))
    assert world.store.positions.authorize(me, end).value.owned == {TP: ()}
    assert world.commit(me, end) == completed(end)
    assert world.positions() == {str(WHOLE): "0"}


def test_verdict_per_hash__a_refused_lane_does_not_block_the_commit_of_the_others(world: World) -> None:
    """Rule: verdict-per-hash. A commit or an authorisation may name a lane that the member owns only in part."""
    me = world.owner()
    lower, upper = cuts(2)
    end = offset(lane("aa.1", 0, 10, lower), lane("aa.9", 0, 20, upper))
    assert world.commit(me, end) == {TP: (Fact(upper, 20, "aa.9"),)}
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


def test_one_life__a_new_life_fences_the_old_one_in_every_verb(world: World) -> None:
    """Rule: one-life. The checkpoint names the member: same checkpoint, same member."""
    old = world.owner()
    world.join("m-1", "i2")
    end = offset(lane("aa.1", 0, 10))
    for verb in (
        lambda: world.store.members.heartbeat(old),
        lambda: world.store.positions.acquire(old, WANTED),
        lambda: world.store.positions.authorize(old, end),
        lambda: world.commit(old, end),
        lambda: world.store.members.finish(old, {TP: 0}),
        lambda: world.store.members.leave(old, {TP: ()}),
        lambda: world.join("m-1", "i1", before="aa"),
    ):
        with pytest.raises(verdicts.Fenced):
            verb()
    assert world.positions() == {str(WHOLE): "0"}


def lived(joined_at: str = "") -> Joining:
    return Joining(FIELDS, joined_at=joined_at)


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

    An application has one live member in a group, unless `allowSeveralQueries`; a Spark query has one in any case.
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
    assert world.assign(one, {"m-1": WANTED}) == 1
    assert world.store.members.look(one).value == Look(1, WANTED, "", (), protocol="test 1")
    world.join("m-2", "i2")
    assert world.store.members.look(one).value.members == ("m-1", "m-2")
    lower, upper = cuts(2)
    assert world.assign(one, {"m-1": {TP: (lower,)}, "m-2": {TP: (upper,)}}) == 2
    world.found(p1=0)
    assert world.store.members.look(one).value.occasion == "", "a partition that was counted before changes nothing"
    more = {"orders": Topic("orders", "id-1", (0, 1, 2))}
    world.store.positions.create("aa", more, {TopicPartition("orders", 2): 0})
    assert world.store.members.look(one).value.occasion != ""


@pytest.mark.parametrize(
    ("members", "chosen"),
    [
        pytest.param({"A": [V0], "B": [V0], "C": [V0]}, V0, id="phase 1: everybody knows v0"),
        pytest.param({"A": [V1, V0], "B": [V0], "C": [V0]}, V0, id="phase 2: A knows v1 too"),
        pytest.param({"A": [V1, V0], "B": [V1, V0], "C": [V0]}, V0, id="phase 3: B too"),
        pytest.param({"A": [V1, V0], "B": [V1, V0], "C": [V1, V0]}, V1, id="phase 4: all prefer v1"),
        pytest.param({"A": [V1], "B": [V1], "C": [V1]}, V1, id="v0 is dropped later, one by one as well"),
        pytest.param({"A": [V1, V0]}, V1, id="a single member gets its first choice"),
        pytest.param({"A": [V1, V0], "B": [V0, V1], "C": [V0, V1]}, V0, id="the majority of first votes wins"),
        pytest.param({"A": [RANGE, V0], "B": [V0, RANGE]}, V0, id="ties break by name"),
        pytest.param({"A": [V1, V0], "B": [V0, V1]}, V0, id="and then by version"),
        pytest.param(
            {"A": [V1, RANGE, V0], "B": [RANGE, V0], "C": [V0, RANGE]},
            RANGE,
            id="votes count for assignors that all know, not for v1",
        ),
    ],
)
def test_common_assignor__members_vote_only_among_those_that_all_of_them_know(
    members: dict[str, list[Protocol]], chosen: Protocol
) -> None:
    """Rule: common-assignor. Members list assignors by preference."""
    assert agree(members) == Agreement(chosen, {})


def copies(world: World) -> dict[str, str]:
    fields = cast(dict[str, str], world.redis.hgetall(GroupKeys(world.group).policy))
    return {name.removeprefix("cluster:"): value for name, value in fields.items() if name.startswith("cluster:")}


def test_cluster_policies__a_group_has_the_latest_ones(world: World) -> None:
    """Rule: cluster-policies.

    Policies of the Kafka cluster, and of topics in all groups, are records of the compacted topic
    `coop-kafka-policies`.
    """
    world.found()
    copy = world.store.policies.copy
    copy("", Policy())
    assert copies(world) == {}, "no topic of policies, no copy"
    copy("-", UNKNOWN_POLICY)
    assert copies(world) == {"version": "-", ICS: "unknown"}
    copy("", Policy())
    assert copies(world) == {}, "there is none after all"
    copy("id-p 7", CLUSTER)
    assert copies(world) == {"version": "id-p 7", ICS: "true", ORDERS: "false"}
    for late in (("id-p 6", Policy()), ("-", UNKNOWN_POLICY), ("", Policy())):
        copy(*late)
        assert copies(world)[ORDERS] == "false", f"{late[0]!r} is no newer version"
    world.policies.set_policy({ORDERS: "true"})
    assert world.store.policies.policy().in_order("orders"), "the strictest level holds"
    copy("id-p 10", Policy())
    assert copies(world) == {"version": "id-p 10", ICS: "true"}
    copy("id-q 1", Policy(False))
    assert copies(world) == {"version": "id-q 1", ICS: "false"}, "another topic of policies"
    assert not world.kept_for_ever()
    reasons = [why for why in world.events("policy") if "cluster:" in why]
    assert reasons == [
        f"cluster:{ICS} is unknown{UNREADABLE_WHY}",
        f"cluster:{ICS} is at its default",
        f"cluster:{ORDERS} is false",
        f"cluster:{ORDERS} is at its default",
        f"cluster:{ICS} is false",
    ]


def test_release_to_a_waiting_owner__one_range_at_a_time(world: World) -> None:
    """Rule: release-to-a-waiting-owner.

    Ranges move one at a time, between two batches of their owner: it commits, releases, and the new owner acquires.
    """
    one = world.owner()
    two = world.join("m-2", "i2")
    lower, upper = cuts(2)
    assert world.store.positions.acquire(two, {TP: (upper,)}).value.ownership == {TP: ()}, "its owner is alive"
    assert world.store.members.release(one, WANTED).value == 0, "no assignment names another owner"
    world.assign(one, {"m-1": {TP: (lower,)}, "m-2": {TP: (upper,)}})
    assert world.store.members.release(one, {TP: (lower,)}).value == 0, "it is assigned to its owner"
    assert world.store.members.release(one, WANTED).value == 1
    assert world.store.positions.acquire(two, {TP: (upper,)}).value.ownership == {TP: (Owned(upper, "aa.2"),)}
    assert world.store.positions.acquire(one, {TP: (lower,)}).value.ownership == {TP: (Owned(lower, "aa.1"),)}
    assert list(world.positions()) == [str(lower), str(upper)], "segments are cut where ownership changes"


def test_release_to_a_waiting_owner__nothing_to_one_that_is_gone_or_leaving(world: World) -> None:
    one = world.owner()
    world.assign(one, {"m-9": WANTED})
    assert world.store.members.release(one, WANTED).value == 0
    two = world.join("m-2", "i2")
    world.assign(two, {"m-2": WANTED})
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
