"""What a loss of Redis, of records or of a log costs, and what proves the rest (docs/protocol.md#losses)."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from coordinator.assignment.policies import NO_POLICY, Policy
from coordinator.progress.ownership import Fact, Facts, Owned
from coordinator.redis.keys import GroupKeys
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.replies import Caller, Joining
from coordinator.values import verdicts
from coordinator.values.ranges import WHOLE
from coordinator.values.verdicts import Replaced
from store_world import FIELDS, NO_MEMBER, OTHER, SESSION, TOPICS, TP, WANTED, World, lane, offset

ON_EACH_SERVER = True
ICS, ORDERS = "accept.individual.commit", "accept.range.fetch:orders"
UNKNOWN = Policy(accept_individual_commit=False, unknown=True)


def test_loss_of_state__an_earlier_copy_is_seen_by_its_commit_sequence(world: World) -> None:
    """Rule: loss-of-state. Every script but six checks for a loss of state before anything else."""
    world.found()
    me = world.join()
    newer = Caller(me.member, me.incarnation, me.nonce, str(int(me.seq) + 100))
    with pytest.raises(verdicts.Lost, match="earlier"):
        world.store.members.heartbeat(newer)


def test_loss_of_state__positions_that_were_deleted_under_an_owner(world: World) -> None:
    me = world.owner(p0=5)
    end = offset(lane("aa.1", 5, 10))
    world.redis.delete(GroupKeys(world.group).segments(TP))
    for verb in (
        lambda: world.commit(me, end),
        lambda: world.store.positions.acquire(me, WANTED),
        lambda: world.store.members.finish(me, {TP: 100}),
    ):
        with pytest.raises(verdicts.Lost, match="is gone"):
            verb()
    world.store.positions.recover(me, "bb", "deleted", 0, TOPICS, {TP: 7})
    assert world.store.positions.stable(["orders"])[TP] == 7


@pytest.mark.parametrize("verb", ["join", "heartbeat", "create", "recover"])
def test_one_founding__a_member_of_another_one_is_refused(world: World, verb: str) -> None:
    """Rule: one-founding. The first nonce of a group is its founding."""
    world.found(p0=5)
    me = replace(world.join(), founding="bb")
    positions, members = world.store.positions, world.store.members
    calls: dict[str, Callable[[], object]] = {
        "join": lambda: members.join(me, "", Joining(FIELDS)),
        "heartbeat": lambda: members.heartbeat(me),
        "create": lambda: positions.create("", TOPICS, {TP: 9}, founding="bb"),
        "recover": lambda: positions.recover(me, "cc", "restarted", 0, TOPICS, {TP: 9}),
    }
    with pytest.raises(Replaced):
        calls[verb]()
    assert positions.status().founding == "aa"


def test_recover_by_proof__positions_that_redis_still_has_are_kept(world: World) -> None:
    """Rule: recover-by-proof. A recovery keeps the positions that Redis still has, and raises them to proven ones."""
    world.found(p0=5)
    world.redis.delete(GroupKeys(world.group).meta)
    world.store.positions.recover(NO_MEMBER, "bb", "meta is gone", 0, TOPICS, {TP: None})
    assert world.store.positions.stable(["orders"]) == {TP: 5}
    assert not world.kept_for_ever()


def test_recover_by_proof__individual_commits_that_redis_still_has_are_kept(world: World) -> None:
    """A recovery keeps the positions that Redis still has, and raises them to proven ones."""
    world.owner({str(WHOLE): "45-47 50-50"}, p0=43)
    world.restart()
    world.store.positions.recover(NO_MEMBER, "bb", "restarted", 0, TOPICS, {TP: 45})
    assert (world.positions(), world.ics()) == ({str(WHOLE): "48"}, {str(WHOLE): "50-50"})


@pytest.mark.parametrize(
    ("kept", "proven", "found"),
    [
        pytest.param({}, None, UNKNOWN, id="nothing is left, and nothing proves them"),
        pytest.param({}, NO_POLICY, NO_POLICY, id="the mirror proves the defaults"),
        pytest.param({}, Policy(False, frozenset({"orders"})), Policy(False, frozenset({"orders"})), id="the mirror's"),
        pytest.param({ICS: "false"}, None, Policy(False), id="those that Redis kept"),
        pytest.param({ICS: "true"}, Policy(False), Policy(False), id="the mirror's are stricter"),
        pytest.param(
            {ORDERS: "false"}, NO_POLICY, Policy(True, frozenset({"orders"})), id="those in Redis are stricter"
        ),
    ],
)
def test_policies_survive__the_strictest_evidence_holds(
    world: World, kept: dict[str, str], proven: Policy | None, found: Policy
) -> None:
    """Rule: policies-survive. The mirror names the group's policies beside each offset."""
    world.found(p0=5)
    if kept:
        world.policies.set_policy(kept)
    world.redis.delete(GroupKeys(world.group).meta)
    world.store.positions.recover(NO_MEMBER, "bb", "meta is gone", 0, TOPICS, {TP: None}, (), proven)
    assert world.store.policies.policy() == found
    assert not world.kept_for_ever()


def test_policies_survive__a_restart_keeps_those_of_redis(world: World) -> None:
    world.found(p0=5)
    world.restart()
    world.store.positions.recover(NO_MEMBER, "bb", "restarted", 0, TOPICS, {TP: None})
    assert world.store.policies.policy() == NO_POLICY, "no policy was set"


def test_policies_survive__unknown_ones_end_with_an_operator_or_a_later_proof(
    world: World,
) -> None:
    world.found(p0=5)
    for nonce in ("bb", "cc"):
        world.redis.delete(*OperatorVerbs.of_group(world.client, world.group).names())
        world.store.positions.recover(NO_MEMBER, nonce, "all is gone", 0, TOPICS, {TP: 5})
        assert not world.store.policies.policy().may_share("orders")
        assert world.store.policies.policy().in_order("orders")
        if nonce == "bb":
            world.policies.set_policy({ICS: "true"})
        else:
            world.redis.delete(GroupKeys(world.group).meta)
            world.store.positions.recover(NO_MEMBER, "dd", "meta is gone", 0, TOPICS, {TP: 5}, (), NO_POLICY)
        assert world.store.policies.policy() == NO_POLICY


def test_recovering_session__epochs_are_void_and_only_assertions_are_taken(world: World) -> None:
    """Rule: recovering-session.

    While the group recovers, Redis refuses the verbs with owner in the table of verbs, and resets that keep some
    positions.
    """
    world.found(p0=5)
    me = world.join()
    world.join("m-2")
    world.store.positions.acquire(me, WANTED)
    end = offset(lane("aa.1", 5, 10))
    world.restart()
    with pytest.raises(verdicts.Lost):
        world.commit(me, end)
    world.store.positions.recover(me, "bb", "restarted", 0, TOPICS, {TP: None, OTHER: 3})
    with pytest.raises(verdicts.Rejoin):
        world.store.members.heartbeat(me)
    me = world.join(before="aa")
    with pytest.raises(verdicts.Recovering):
        world.commit(me, end)
    world.store.positions.claim(end, {TP: (Fact(WHOLE, 8),)})
    assert world.store.positions.stable(["orders"]) == {TP: 8, OTHER: 3}


def recovers_for(world: World) -> int:
    """The time until the end of a recovery, by the clock of the test."""
    return int(cast(str, world.redis.hget(GroupKeys(world.group).meta, "recovering_until")) or 0) - world.now


def test_recovering_session__it_lasts_for_the_longest_session_that_redis_still_knows(world: World) -> None:
    world.found(p0=5)
    world.store_with(session_ms=3 * SESSION).members.join(Caller("m-2", "i2"), "", Joining(FIELDS))
    world.restart()
    world.store.positions.recover(NO_MEMBER, "bb", "restarted", 0, TOPICS, {TP: None})
    assert recovers_for(world) == 3 * SESSION


def test_recovering_session__or_for_that_of_a_member_that_joins_meanwhile(world: World) -> None:
    world.found(p0=5)
    world.join()
    world.restart()
    world.store.positions.recover(NO_MEMBER, "bb", "restarted", 0, TOPICS, {TP: None})
    world.lapse(100)
    assert recovers_for(world) == SESSION - 100
    world.store_with(session_ms=3 * SESSION).members.join(Caller("m-2", "i2"), "aa", Joining(FIELDS))
    assert recovers_for(world) == 3 * SESSION - 100


@pytest.mark.parametrize("who", ["of another nonce", "that knows a later state", "that is no member"])
def test_recovering_session__all_of_it_if_redis_may_be_older(world: World, who: str) -> None:
    """Redis may not know all members then."""
    world.found(p0=5)
    me = world.join()
    caller = {
        "of another nonce": replace(me, nonce="ab"),
        "that knows a later state": replace(me, seq="999"),
        "that is no member": NO_MEMBER,
    }[who]
    world.restart()
    world.store.positions.recover(caller, "bb", "restarted", 0, TOPICS, {TP: None})
    world.join(before="aa")
    assert recovers_for(world) == SESSION


def test_recovering_session__a_member_that_was_lost_before_is_not_waited_for(world: World) -> None:
    world.found(p0=5)
    world.join("m-2", "i2")
    me = world.join()
    world.outlive(me)
    world.outlive(me)
    world.restart()
    world.store.positions.recover(me, "bb", "restarted", 0, TOPICS, {TP: None})
    world.join(before="aa")
    assert recovers_for(world) <= 0


def test_recovering_session__it_ends_once_every_known_member_has_joined_again(world: World) -> None:
    world.found(p0=5)
    me, other = world.join(), world.join("m-2", "i2")
    world.restart()
    world.store.positions.recover(other, "bb", "restarted", 0, TOPICS, {TP: None})
    assert world.redis.hget(GroupKeys(world.group).meta, "unheard") == "m-1 m-2"
    again = world.join(before="aa")
    with pytest.raises(verdicts.Recovering):
        world.store.positions.acquire(again, WANTED)
    with pytest.raises(verdicts.Recovering):
        world.join("m-3", "i3")
    world.join("m-2", "i2", "aa")
    assert world.store.positions.acquire(again, WANTED).value.ownership == {TP: (Owned(WHOLE, "bb.1"),)}
    assert (me.member, recovers_for(world) > 0) == ("m-1", False)


@pytest.mark.parametrize(
    ("text", "epoch", "position"),
    [
        pytest.param("4@90 reset=0 topic=id-1", 3, 5, id="an older one: ignored"),
        pytest.param("4@90 reset=0 topic=id-1", 4, 10, id="the same"),
        pytest.param("9@90 reset=0 topic=id-1", 10, 10, id="a newer one"),
        pytest.param("4@90 reset=0 topic=id-1", None, 10, id="unknown"),
        pytest.param(None, 3, 10, id="Redis knows none"),
        pytest.param("4@90 reset=7 topic=id-1", 3, 10, id="Redis knows that of another reset epoch"),
        pytest.param("4@90 reset=0 topic=id-2", 3, 10, id="Redis knows that of another topic id"),
    ],
)
def test_leader_epoch_facts__an_assertion_of_an_older_one_is_ignored(
    world: World, text: str | None, epoch: int | None, position: int
) -> None:
    """Rule: leader-epoch-facts. "The log of leader epoch e reached offset o" is a fact for ever."""
    world.found(p0=5, p1=5)
    if text:
        world.store.positions.report_ends({}, {TP: text})
    facts: Facts = {OTHER: (Fact(WHOLE, 10),), TP: (Fact(WHOLE, 10),)}
    world.store.positions.claim(replace(offset(), leader_epochs={} if epoch is None else {TP: epoch}), facts)
    assert world.store.positions.stable(["orders"]) == {TP: position, OTHER: 10}
