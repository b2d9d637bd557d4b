"""Who owns a range, and how it passes to another member (docs/protocol.md#ownership)."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignor_groups import some_members, splits, text
from commit_apis import api, ranges
from coordinator.assignment.assigning import assigned, computed
from coordinator.assignment.assignors.assignor import Assignment, Subscriber
from coordinator.assignment.assignors.grouped import Grouped
from coordinator.assignment.policies import UNKNOWN_POLICY, Policy
from coordinator.assignment.protocols import Agreement, Protocol, agree
from coordinator.errors import GroupBusyError, IndividualCommitNotAllowedError, TopicRangeFetchNotAllowedError
from coordinator.member.owning import follow
from coordinator.member.requests import LookAtGroup, ReadStable, ReadTopics
from coordinator.plan.packing import pack
from coordinator.progress.ownership import Fact, Owned, completed
from coordinator.progress.slices import Slice
from coordinator.redis.events import last_events
from coordinator.redis.group_state import STANDBY, WORKING
from coordinator.redis.keys import GroupKeys
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.replies import Caller, Joining, Look
from coordinator.redis.snapshot import read_group
from coordinator.tools.operations.draining import drain, handed_over
from coordinator.values import verdicts
from coordinator.values.hash_map import HashMap
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import Topic, TopicPartition
from group_services import Group, read, records, subscribed
from states import GROWN, TP1, asks, call, decided, joined, look, owning
from store_world import FIELDS, LOWER, SESSION, TOPICS, TP, UPPER, WANTED, World, lane, offset
from streams import keyed

ON_EACH_SERVER = True
V0, V1, RANGE = Protocol("mine", 0), Protocol("mine", 1), Protocol("range", 1)
ICS, ORDERS = "accept.individual.commit", "accept.range.fetch:orders"
UNREADABLE_WHY = (
    ": a member may not read the topic coop-kafka-policies. Nothing is shared, and each partition is read in order, "
    "until its Kafka user gets READ on the topic"
)
CLUSTER = Policy(refused_topics=frozenset({"orders"}))
OFF = Policy(accept_individual_commit=False)
MORE = look({TP: (WHOLE,), TP1: (WHOLE,)})


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


def test_outage_grace__the_first_caller_after_an_outage_takes_nothing_for_half_a_session(world: World) -> None:
    """Rule: outage-grace. After a silence of all members, their leases do not end at once."""
    world.owner()
    other = world.join("m-2", "i2")
    for ms, taken in ((SESSION + 1, ()), (SESSION // 2, ()), (1, (Owned(WHOLE, "aa.2"),))):
        world.now += ms  # nobody has called meanwhile
        assert world.store.positions.acquire(other, WANTED).value.ownership == {TP: taken}


def test_outage_grace__without_a_silence_each_lease_ends_at_its_time(world: World) -> None:
    world.found()
    one, two = world.join("m-1"), world.join("m-2")
    world.store.positions.acquire(one, WANTED)
    for ms in (SESSION // 2 - 10, 20, SESSION // 4, SESSION // 4 - 10):
        world.now += ms
        assert world.store.positions.acquire(two, WANTED).value.ownership == {TP: ()}
    world.now += 1
    assert world.store.positions.acquire(two, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}


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
    end = offset(lane("aa.1", 0, 10, LOWER), lane("aa.9", 0, 20, UPPER))
    assert world.commit(me, end) == {TP: (Fact(UPPER, 20, "aa.9"),)}
    assert world.positions() == {str(LOWER): "10", str(UPPER): "0"}
    fence = last_events(world.client, world.group, 1)[0]
    why = "a commit left out ranges that have moved since, as after a restart; their owner reads them"
    assert (fence.kind, fence.member, fence.why, fence.ranges) == ("fence", "m-1", why, f"orders-0 {UPPER}")


def test_verdict_per_hash__an_authorisation_names_the_parts_that_are_still_owned(world: World) -> None:
    me = world.owner()
    end = offset(lane("aa.1", 0, 10, LOWER), lane("aa.7", 0, 10, UPPER))
    assert world.store.positions.authorize(me, end).value.owned == {TP: (Owned(LOWER, "aa.1"),)}


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
    """Rule: one-member-per-application. An application has one live member in a group."""
    world.found()
    world.join(application="driver")
    world.join("m-3", "i3", application="another driver")
    with pytest.raises(verdicts.Busy) as busy:
        world.join("m-2", "i2", application="driver")
    assert (busy.value.member, busy.value.lease_end_ms) == ("m-1", world.now + SESSION)
    world.lapse(SESSION + 1)
    world.join("m-2", "i2", application="driver")


def test_one_filter__a_member_with_another_one_waits_for_the_end_of_the_lease(world: World) -> None:
    """Rule: one-filter. All live members of a group have the same record filter."""
    world.found()
    world.filtering("m-1", "deny a")
    with pytest.raises(verdicts.OtherFilter) as refused:
        world.filtering("m-2", "deny b")
    assert (refused.value.theirs, refused.value.lease_end_ms) == ("deny a", world.now + SESSION)
    world.lapse(SESSION + 1)
    world.filtering("m-2", "deny b")
    with pytest.raises(verdicts.OtherFilter):
        world.filtering("m-1", "deny a")


def test_one_filter__a_member_that_slept_ends_its_batch_and_gets_no_other(world: World) -> None:
    """Otherwise its next life would commit the planned ends, and skip the records behind the true ones."""
    end, to_60 = replace(offset(lane("aa.1", 0, 100)), early=1), {TP: HashMap.of(WHOLE, 60)}
    world.found()
    me = world.filtering("m-1", "deny a")
    world.store.positions.acquire(me, WANTED)
    world.store.positions.authorize(me, end, as_planned=True)
    world.lapse(SESSION + 1)
    world.filtering("m-2", "deny b")
    world.store.members.heartbeat(me)
    assert world.redis.zscore(GroupKeys(world.group).leases, "m-1") == world.now + SESSION
    assert world.store.positions.seal(me, end.digest, to_60).value
    for verb in (
        lambda: world.store.members.look(me),
        lambda: world.store.positions.acquire(me, WANTED),
        lambda: world.store.positions.authorize(me, end),
    ):
        with pytest.raises(verdicts.Rejoin):
            verb()
    assert world.store.positions.commit(me, end, {TP: (Fact(WHOLE, 60, "aa.1"),)}, end.digest).value.refused == {}
    assert world.positions() == {str(WHOLE): "60"}
    world.lapse(SESSION + 1)
    again = world.filtering("m-1", "deny a", "i2")
    assert world.store.positions.authorize(again, end, replayed=True).value.ends == to_60
    assert world.store.positions.acquire(again, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.1"),)}


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
    assert world.assign(one, {"m-1": {TP: (LOWER,)}, "m-2": {TP: (UPPER,)}}) == 2
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


class Half:
    """A user's assignor that forgets half of the hashes."""

    name, version = "half", 1

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        return {members[0].member: {TP: cuts(2)[:1]}}


def test_checked_assignment__whole_partitions_instead_of_one_with_a_hole() -> None:
    """Rule: checked-assignment. Members check every assignment before use."""
    result = computed(Half(), some_members(2, "orders"), {"orders": 1}, {}, Policy())
    assert "no member owns 4000000000000000-7fffffffffffffff of orders-0" in result.failure
    assert text(result.assignment) == {"orders-0": "m0"}


def test_sharing_policies__a_partition_is_split_only_while_it_may_be_shared() -> None:
    """Rule: sharing-policies. A partition is shared only if group, topic and query all allow it."""
    members = some_members(2, "t")
    halves = assigned(Grouped(), members, {"t": 1}, {}, Policy())
    one = assigned(Grouped(), members, {"t": 1}, halves, OFF)
    again = assigned(Grouped(), members, {"t": 1}, one, Policy())
    assert (splits(halves), splits(one), splits(again)) == (1, 0, 1)


def test_sharing_policies__the_commit_api_refuses_what_a_policy_forbids(world: World) -> None:
    commits = api(world)
    world.policies.set_policy({"accept.individual.commit": "false"})
    with pytest.raises(IndividualCommitNotAllowedError) as refused:
        commits.commit(TP, ranges("43-44"))
    assert refused.value.code == 88
    assert f"coop-kafka policy {shlex.quote(world.group)} --set accept.individual.commit=true" in str(refused.value)
    world.policies.set_policy({"accept.individual.commit": "true", "accept.range.fetch:orders": "false"})
    with pytest.raises(TopicRangeFetchNotAllowedError) as refused_by_topic:
        commits.commit(TP, ranges("43-44"))
    assert refused_by_topic.value.code == 89
    assert f"{shlex.quote(world.group)} --set accept.range.fetch:orders=true" in str(refused_by_topic.value)
    world.policies.set_policy({"accept.range.fetch:orders": "", "accept.range.fetch:returns": "false"})
    assert commits.commit(TP, ranges("43-44")).stable == 45


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


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(1, 500)), max_size=5), st.integers(1, 6))
def test_partition_order__one_task_reads_all_lanes_of_a_partition(
    partitions: list[tuple[int, int, int]], tasks: int
) -> None:
    """Rule: partition-order.

    If `accept.range.fetch` of a topic is false, each partition of it is read in the order of its log.
    """
    lanes = {
        Slice(TopicPartition("orders", partition), hashes, OffsetRange(0, length))
        for partition, count, length in {p[0]: p for p in partitions}.values()
        for hashes in cuts(count)
    }
    packed = pack(list(lanes), tasks=tasks, max_weight=10.0, in_order={"orders"})
    assert {s for task in packed for s in task} == lanes
    assert all(n == 1 for n in Counter(p for task in packed for p in {s.partition for s in task}).values())


def test_partition_order__ranges_of_several_owners_become_one_at_the_next_acquisition(world: World) -> None:
    world.found()
    one, two = world.join("m-1", "i1"), world.join("m-2", "i2")
    acquire = world.store.positions.acquire
    acquire(one, {TP: (LOWER,)})
    acquire(two, {TP: (UPPER,)})
    assert acquire(one, WANTED, {"orders"}).value.ownership == {TP: (Owned(LOWER, "aa.1"),)}, "the rest has an owner"
    world.lapse(SESSION + 1)
    world.store.members.heartbeat(one)
    world.lapse(SESSION - 1)
    assert acquire(one, WANTED).value.ownership == {TP: (Owned(LOWER, "aa.1"), Owned(UPPER, "aa.3"))}
    assert acquire(one, WANTED, {"returns"}).value.ownership == {TP: (Owned(LOWER, "aa.1"), Owned(UPPER, "aa.3"))}
    assert acquire(one, WANTED, {"orders"}).value.ownership == {TP: (Owned(WHOLE, "aa.4"),)}
    assert acquire(one, WANTED, {"orders"}).value.ownership == {TP: (Owned(WHOLE, "aa.4"),)}, "once"


def test_current_cluster__a_member_asks_kafka_at_once_for_a_partition_that_it_does_not_know() -> None:
    """Rule: current-cluster.

    If a member's assignment names a partition that it does not know, the member asks Kafka at once.
    """
    state = joined(owning=owning())
    decision = decided(follow, state, call(), (LookAtGroup(), MORE), (ReadTopics(anew=True), {"orders": GROWN}))
    assert decision == asks(state, ReadStable(("orders",)))


def test_release_to_a_waiting_owner__one_range_at_a_time(world: World) -> None:
    """Rule: release-to-a-waiting-owner. Ranges move one at a time, between two batches of their owner."""
    one = world.owner()
    two = world.join("m-2", "i2")
    assert world.store.positions.acquire(two, {TP: (UPPER,)}).value.ownership == {TP: ()}, "its owner is alive"
    assert world.store.members.release(one, WANTED).value == 0, "no assignment names another owner"
    world.assign(one, {"m-1": {TP: (LOWER,)}, "m-2": {TP: (UPPER,)}})
    assert world.store.members.release(one, {TP: (LOWER,)}).value == 0, "it is assigned to its owner"
    assert world.store.members.release(one, WANTED).value == 1
    assert world.store.positions.acquire(two, {TP: (UPPER,)}).value.ownership == {TP: (Owned(UPPER, "aa.2"),)}
    assert world.store.positions.acquire(one, {TP: (LOWER,)}).value.ownership == {TP: (Owned(LOWER, "aa.1"),)}
    assert list(world.positions()) == [str(LOWER), str(UPPER)], "segments are cut where ownership changes"


def test_release_to_a_waiting_owner__nothing_to_one_that_is_gone_or_leaving(world: World) -> None:
    one = world.owner()
    world.assign(one, {"m-9": WANTED})
    assert world.store.members.release(one, WANTED).value == 0
    two = world.join("m-2", "i2")
    world.assign(two, {"m-2": WANTED})
    assert world.store.members.finish(two, {TP: 0}).value is True
    assert world.store.members.release(one, WANTED).value == 0
    assert [member for _, _, member in read_group(world.client, world.group).owners[TP]] == ["m-1"]


def test_pinned_or_assigned__an_assigned_member_is_held_while_a_pinned_one_works(world: World) -> None:
    """Rule: pinned-or-assigned.

    A pinned member names its ranges itself, and no assignment is computed for its group.
    """
    world.found()
    world.pin("m-1", LOWER)
    with pytest.raises(verdicts.Held):
        world.join("m-2")
    world.lapse(SESSION + 1)
    me = world.join("m-2")
    assert world.store.members.look(me).value.members == ("m-2",)
    assert "protocol" not in read_group(world.client, world.group).meta
    assert read_group(world.client, world.group).assignment == {}


@pytest.mark.parametrize(
    ("named", "held"),
    [
        pytest.param((LOWER,), True, id="the same ranges"),
        pytest.param((WHOLE,), True, id="more than them"),
        pytest.param((HashRange(LOWER.hi, UPPER.hi),), True, id="one hash of them"),
        pytest.param((UPPER,), False, id="the hashes beside them"),
    ],
)
def test_one_claim_per_hash__of_a_working_member_until_its_lease_has_ended(
    world: World, named: tuple[HashRange, ...], held: bool
) -> None:
    """Rule: one-claim-per-hash. A join claims the ranges of a pinned member."""
    world.found()
    world.pin("m-1", LOWER)
    if held:
        with pytest.raises(verdicts.Held) as verdict:
            world.pin("m-2", *named)
        assert (verdict.value.member, verdict.value.lease_end_ms) == ("m-1", world.now + SESSION)
        world.lapse(SESSION + 1)
    spare = world.pin("m-2", *named)
    assert world.store.members.look(spare).value.mine == {TP: named}


def test_leave_keeps_unconfirmed__until_the_end_of_the_lease(world: World) -> None:
    """Rule: leave-keeps-unconfirmed. A member that leaves frees the ranges without an unconfirmed slice."""
    me = world.owner()
    assert world.store.members.leave(me, {TP: (UPPER,)}) == 1
    state = read_group(world.client, world.group)
    assert state.owners == {TP: ((UPPER, "aa.1", "m-1"),)}
    assert state.leases_ms == {"m-1": world.now + SESSION}


def test_one_member_a_set__it_commits_the_batch_in_the_sink_before_it_leaves(
    members: Group, tp: TopicPartition
) -> None:
    """Rule: one-member-a-set. With `redundancy`, each replica set is a group of its own."""
    moving, end = members.begun(subscribed(tp))
    moving.settle(end)
    moving.leave()
    assert (members.state.leases_ms, members.state.stable) == ({}, {tp: 5})
    members.kafka.produce(tp.topic, keyed(5))
    _, following = members.begun(subscribed(tp))
    assert records(following) == read(tp, 5, 10)


def test_standby_takes_over__from_an_owner_whose_lease_has_ended(world: World) -> None:
    """Rule: standby-takes-over. A member with `standby=true` joins as a standby."""
    owner = world.owner()
    standby = world.standing_by("m-2")
    assert world.assign(owner, {"m-1": WANTED}) == 1
    look = world.store.members.look(standby).value
    assert (look.role, look.mine, look.occasion) == (STANDBY, {}, "")
    world.lapse(SESSION + 1)
    look = world.store.members.look(standby).value
    assert (look.role, look.members) == (WORKING, ("m-2",)), "one look: it works, and computes the assignment"
    assert world.assign(standby, {"m-2": WANTED}) == 2
    assert world.store.positions.acquire(standby, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}
    assert world.events("takeover") == ["this standby works from now on: 0 of 1 members worked"]


def test_drain_hands_over__a_drained_member_reads_on_until_its_next_owner_waits(world: World) -> None:
    """Rule: drain-hands-over. An operator may drain working members, for example before a restart."""
    world.found()
    drained, other = world.join(), world.join("m-2", "i2")
    world.assign(drained, {"m-1": {TP: (LOWER,)}, "m-2": {TP: (UPPER,)}})
    for caller, hashes in ((drained, LOWER), (other, UPPER)):
        world.store.positions.acquire(caller, {TP: (hashes,)})
    operator = OperatorVerbs.of_group(world.client, world.group, now=lambda: world.now)
    drain(operator, ["m-1"])
    assert world.store.members.look(drained).value.mine == {}
    assert world.store.members.release(drained, {TP: (LOWER,)}).value == 0, "no new owner waits yet: it goes on"
    world.assign(other, {"m-2": WANTED})
    assert not handed_over(world.client, world.group, ["m-1"], 0)
    assert world.store.members.release(drained, {TP: (LOWER,)}).value == 1
    assert handed_over(world.client, world.group, ["m-1"], 0)
    assert world.store.members.look(drained).value.role == STANDBY
    with pytest.raises(GroupBusyError, match=r"no other working member.*start another query"):
        drain(operator, ["m-2"])
    assert [why.partition(": ")[2] for why in world.events("drain")] == ["other members get its ranges"]
