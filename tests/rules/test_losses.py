"""What a loss of Redis, of records or of a log costs, and what proves the rest (docs/protocol.md#losses)."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import cast

import pytest

from coordinator.assignment.policies import NO_POLICY, Policy
from coordinator.assignment.settings import GroupSettings
from coordinator.errors import DataLossError, RedisNotReadyError, StateLostError
from coordinator.progress.data_loss import LOW_MS
from coordinator.progress.ownership import Fact, Facts, Owned
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.replies import Caller, Joining
from coordinator.values import verdicts
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import TopicPartition
from coordinator.values.verdicts import Replaced
from group_services import LONG_MS, UNLIMITED, Group, batch, read, records, run, subscribed
from kafka_logs import Lower, Silent, delete_records
from own_valkey import OwnValkey
from store_world import FIELDS, LOWER, NO_MEMBER, OTHER, SESSION, TOPICS, TP, UPPER, WANTED, World, lane, offset
from streams import keyed
from topics import Kafka, Record

ON_EACH_SERVER = True
ICS, ORDERS = "accept.individual.commit", "accept.range.fetch:orders"
UNKNOWN = Policy(accept_individual_commit=False, unknown=True)


def test_loss_of_state__an_earlier_copy_is_seen_by_its_commit_sequence(world: World) -> None:
    """Rule: loss-of-state. Every script but five checks for a loss of state before anything else."""
    world.found()
    me = world.join()
    newer = Caller(me.member, me.incarnation, me.nonce, str(int(me.seq) + 100))
    with pytest.raises(verdicts.Lost, match="earlier"):
        world.store.members.heartbeat(newer)


def test_loss_of_state__an_earlier_copy_gets_no_newer_leader_epoch(world: World) -> None:
    """It would hide a cut between its positions and the log of now (rule: leader-epoch-facts)."""
    world.found(p0=5)
    me = world.join()
    positions, newer = world.store.positions, replace(me, seq=str(int(me.seq) + 100))
    extents, known = {TP: "4@9 reset=0 topic=id-1"}, GroupKeys(world.group)
    with pytest.raises(verdicts.Lost, match="earlier"):
        positions.report_ends({TP: 9}, extents, caller=newer)
    with pytest.raises(verdicts.Replaced):
        positions.report_ends({TP: 9}, extents, caller=replace(me, founding="bb"))
    world.redis.hset(known.meta, "run_id", "of another server")
    with pytest.raises(verdicts.Lost, match="another Redis server"):
        positions.report_ends({TP: 9}, extents, caller=me)
    assert not world.redis.exists(known.epoch("orders"), known.end("orders"))


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


@pytest.mark.parametrize("verb", ["join", "heartbeat", "create", "claim", "recover"])
def test_one_founding__a_member_of_another_one_is_refused(world: World, verb: str) -> None:
    """Rule: one-founding. The first nonce of a group is its founding."""
    world.found(p0=5)
    me = replace(world.join(), founding="bb")
    positions, members = world.store.positions, world.store.members
    calls: dict[str, Callable[[], object]] = {
        "join": lambda: members.join(me, "", Joining(FIELDS)),
        "heartbeat": lambda: members.heartbeat(me),
        "create": lambda: positions.create("", TOPICS, {TP: 9}, founding="bb"),
        "claim": lambda: positions.claim(replace(offset(), founding="bb"), {TP: (Fact(WHOLE, 50),)}),
        "recover": lambda: positions.recover(me, "cc", "restarted", 0, TOPICS, {TP: 9}),
    }
    with pytest.raises(Replaced):
        calls[verb]()
    assert (positions.status().founding, world.positions()) == ("aa", {str(WHOLE): "5"})


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


def proves(world: World, *proofs: tuple[HashRange, int], founding: str = "aa", reset: int = 0) -> bool:
    """Whether the group is there after a member's recovery with these proofs of the partition."""
    proven = {TP: tuple(Fact(hashes, position) for hashes, position in proofs)}
    return not world.store.positions.recover(Caller(founding=founding), "bb", "gone", reset, TOPICS, proven)


def test_proofs_add_up__two_members_prove_a_half_each(world: World) -> None:
    """Rule: proofs-add-up. Proofs of several members add up for one session."""
    assert not proves(world, (LOWER, 40))
    assert not proves(world, (LOWER, 30)), "of one hash, the highest proof counts"
    with pytest.raises(verdicts.Absent):
        world.store.positions.status()
    assert GroupKeys(world.group).proofs not in world.kept_for_ever()
    assert proves(world, (LOWER, 35), (UPPER, 50))
    assert world.positions() == {str(LOWER): "40", str(UPPER): "50"}
    assert (world.store.positions.stable(["orders"]), world.store.positions.status().founding) == ({TP: 40}, "aa")
    assert not world.redis.exists(GroupKeys(world.group).proofs)


def test_proofs_add_up__for_one_session(world: World) -> None:
    assert not proves(world, (LOWER, 40))
    world.lapse(SESSION - 1)
    assert not proves(world, (LOWER, 40))
    world.lapse(1)
    with pytest.raises(StateLostError, match="orders-0"):
        proves(world, (LOWER, 40))


def test_proofs_add_up__a_caller_that_proves_nothing_does_not_wait(world: World) -> None:
    for proven in ((), None):
        with pytest.raises(StateLostError, match="orders-0"):
            world.store.positions.recover(NO_MEMBER, "bb", "gone", 0, TOPICS, {TP: proven})
    assert world.redis.keys(GroupKeys(world.group).prefix + "*") == []


def test_proofs_add_up__not_with_those_of_another_founding_or_an_older_reset(world: World) -> None:
    assert not proves(world, (LOWER, 40))
    with pytest.raises(Replaced, match="aa"):
        proves(world, (UPPER, 50), founding="ff")
    with pytest.raises(verdicts.Lost, match="proofs is not"):
        world.store.positions.create("cc", TOPICS, {TP: 99})
    assert not proves(world, (UPPER, 50), reset=7)
    assert proves(world, (LOWER, 10), reset=7)
    assert world.positions() == {str(LOWER): "10", str(UPPER): "50"}


def test_proofs_add_up__of_a_partition_that_the_recovering_member_does_not_read(world: World) -> None:
    world.store.positions.recover(Caller(founding="aa"), "bb", "gone", 0, TOPICS, {OTHER: 7})
    assert not proves(world, (LOWER, 40))
    assert world.positions() == {}
    assert proves(world, (UPPER, 50))
    assert world.store.positions.stable(["orders"]) == {TP: 40, OTHER: 7}


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

    While the group recovers, Redis refuses the verbs with *owner* in the table of verbs.
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


def test_redis_outage__a_commit_is_repeated_until_redis_takes_it_or_the_longest_outage_is_over(
    kafka: Kafka, valkey: OwnValkey, group: str, tp: TopicPartition
) -> None:
    """Rule: redis-outage. While Redis is away, tasks read on."""
    with closing(Group(kafka, valkey.address, group)) as members:
        settings = GroupSettings(group, session_ms=LONG_MS, max_outage_ms=1_000)
        service, first = members.begun(subscribed(tp), settings=settings)
        valkey.configure(min_replicas_to_write="1")  # it takes no writes: so it is away
        members.clock.at_wait = lambda: valkey.configure(min_replicas_to_write="0")
        assert service.next_offset(first, UNLIMITED) is None
        assert members.state.stable == {tp: 5}
        kafka.produce(tp.topic, keyed(3))
        second = batch(service, first)
        valkey.configure(min_replicas_to_write="1")
        with pytest.raises(RedisNotReadyError, match=r"takes no writes.*longer than redisMaxOutage \(1000 ms\)"):
            service.next_offset(second, UNLIMITED)
        valkey.configure(min_replicas_to_write="0")
        assert members.state.stable == {tp: 5}, "the batch is unconfirmed"


def test_named_data_loss__records_that_are_gone_end_the_query_or_are_skipped_on_request(
    members: Group, tp: TopicPartition
) -> None:
    """Rule: named-data-loss.

    Records that are gone, a topic that was created again, and a log that was cut end the query with `DATA_LOSS`.
    """
    members.service(subscribed(tp)).first_positions()
    delete_records(members.kafka, tp, 2)
    service = members.service(subscribed(tp))
    with pytest.raises(DataLossError, match="records 0-1"):
        service.next_offset(StreamOffset(members.name), UNLIMITED)
    service.leave()
    assert members.state.stable == {tp: 0}
    assert records(run(members, subscribed(tp), fail_on_data_loss=False)) == read(tp, 2, 5)
    assert "loss" in members.events


def test_silent_leader__its_partition_waits_and_all_others_are_read(members: Group) -> None:
    """Rule: silent-leader. A member asks all leaders at once, and plans with the answers that come within a second."""
    topic = members.kafka.create_topic("silent", partitions=2)
    here, away = TopicPartition(topic, 0), TopicPartition(topic, 1)

    def produce() -> None:
        members.kafka.produce(topic, [Record(b"", b"key", tp.partition) for tp in (here, away)])

    produce()
    log = Silent(members.log())
    member, end = members.begun(subscribed(here), log=log)
    log.partitions = {away}
    produce()
    end = batch(member, end)
    assert {s.topic_partition for s in end.slices} == {here}
    log.partitions = set()
    assert {s.topic_partition for s in batch(member, end).slices} == {away}
    assert members.state.stable == {here: 2, away: 1}


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_low_end__the_early_answer_of_a_new_leader_is_no_loss(
    members: Group, tp: TopicPartition, fail_on_data_loss: bool
) -> None:
    """Rule: low-end. Offsets that were read lie below the high watermark, whatever the isolation level."""
    log = Lower(members.log())
    member, start = members.begun(subscribed(tp), log=log, fail_on_data_loss=fail_on_data_loss)
    assert member.next_offset(start, UNLIMITED) is None
    log.marks[tp] = 3
    assert member.next_offset(start, UNLIMITED) is None
    members.clock.skip(LOW_MS - 1_000)
    assert member.next_offset(start, UNLIMITED) is None
    assert (members.state.stable, members.state.ends) == ({tp: 5}, {tp: 5})
    log.marks.clear()
    members.kafka.produce(tp.topic, keyed(3))
    assert records(batch(member, start)) == read(tp, 5, 8)
    assert "loss" not in members.events


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
