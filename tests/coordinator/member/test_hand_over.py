"""Ranges that changed hands, and leases that end, as one member sees it: on a real Redis, without Spark."""

import pytest

from coordinator.errors import FencedMemberError, RedisUnavailableError
from coordinator.member.membership import Membership
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.ranges import WHOLE
from coordinator.redis.calls import Answer, Caller
from coordinator.redis.events import last_events
from coordinator.redis.membership import Joining
from coordinator.settings import GroupSettings
from coordinator.subscription import TopicPartition
from group_services import UNLIMITED, Group, TestClock, batch, read, records, subscribed
from store_world import SESSION, TOPICS, TP, World
from streams import eventually


def plans_all(service: Service, group: str, tp: TopicPartition) -> bool:
    """Whether a member plans all the records, of all hashes; at first it may be given a share."""
    end = service.next_offset(StreamOffset(group), UNLIMITED)
    if end is None or sum(s.hashes.size for s in end.slices) != WHOLE.size:
        return False
    return records(end) == read(tp, 0, 5)


def test_what_a_replay_skipped_is_no_more_in_the_next_offset_though_nothing_else_moved(
    members: Group, tp: TopicPartition
) -> None:
    slow, other = members.service(subscribed(tp)), members.service(subscribed(tp), session_ms=60_000)
    slow.first_positions()
    end = batch(slow, StreamOffset(members.name))
    eventually(
        lambda: plans_all(other, members.name, tp), "the lease of the slow one ends, the other plans its records"
    )

    replaying = members.service(subscribed(tp))
    assert replaying.authorize(end).slices == ()
    then = replaying.next_offset(end, UNLIMITED)
    assert then is not None
    assert not {lane.epoch for _, lane in then} & {lane.epoch for _, lane in end}
    assert records(then) == set()


def test_each_call_of_who_has_lost_its_ranges_is_an_event_once(members: Group, tp: TopicPartition) -> None:
    slow, other = members.service(subscribed(tp)), members.service(subscribed(tp), session_ms=60_000)
    slow.first_positions()
    end = batch(slow, StreamOffset(members.name))
    eventually(lambda: plans_all(other, members.name, tp), "the lease of the slow one ends, the other takes over")
    slow.next_offset(end, UNLIMITED)
    zombie = members.service(subscribed(tp))
    for _ in range(2):
        zombie.authorize(end)
    with pytest.raises(FencedMemberError):
        slow.heartbeat_now()
    fences = [(e.member, e.why, e.ranges) for e in last_events(members.client, members.name, 100) if e.kind == "fence"]
    whole, member = f"{tp.topic}-0 whole", end.member
    assert fences == [
        (member, "a commit of what is owned no more at its lane epoch", whole),
        (member, "a batch of what is owned no more at its lane epoch", whole),
        (member, "another life of this member has joined", ""),
    ]


def joined(world: World, clock: TestClock) -> Membership:
    """Member m-1, which has joined the group."""
    world.found()
    membership = Membership(
        world.store,
        clock,
        GroupSettings(world.group, session_ms=SESSION),
        lambda: Joining({"host": "h"}),
        recover=lambda caller, why: None,
        assert_positions=lambda: None,
    )
    membership.identify("m-1")
    membership.call(world.store.heartbeat)
    return membership


def test_a_heartbeat_answered_after_a_loss_of_state_takes_nothing_of_what_was_seen_since(world: World) -> None:
    membership = joined(world, TestClock())

    def answered_late(caller: Caller) -> Answer[None]:
        answer = world.store.heartbeat(caller)
        world.restart()
        world.store.recover(caller, "bb", "restarted", 0, TOPICS, {TP: None})
        membership.rejoin()
        membership.call(world.store.heartbeat)
        return answer

    assert membership.beat(answered_late)
    assert membership.caller.nonce == "bb"
    assert membership.caller.seq != "0", "whether Redis went back is not asked for"


@pytest.mark.parametrize(
    ("says", "told"),
    [
        pytest.param({"host": "h2", "driver_pid": "7"}, ": pid 7 on host h2, at 20", id="who says it"),
        pytest.param({}, "", id="who says nothing"),
    ],
)
def test_who_is_fenced_is_told_the_checkpoint_and_who_took_over(world: World, says: dict[str, str], told: str) -> None:
    elder = joined(world, TestClock())
    world.store.join(Caller("m-1", "another life"), "", Joining(says | {"capacity": "1"}))
    with pytest.raises(FencedMemberError) as fenced:
        elder.call(world.store.heartbeat)
    assert f"driver with the same checkpoint has taken over member m-1 of group {world.group!r}{told}" in str(
        fenced.value
    )


def test_an_outage_is_said_once_with_what_comes_of_it_and_then_seldom(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    clock = TestClock()
    membership = joined(world, clock)

    def away(caller: Caller) -> Answer[None]:
        raise RedisUnavailableError("no answer")

    for _ in range(10):  # heartbeats of half a minute
        assert not membership.beat(away)
        clock.skip(3_000)
    first, second = caplog.messages
    assert "For 0 s now; the query fails once it has needed Redis for redis.max.outage (60000 ms)" in first
    assert "For 21 s now" in second
    assert membership.beat(world.store.heartbeat)
    assert not membership.beat(away)
    assert "For 0 s now" in caplog.messages[-1], "another outage is news again"


def test_a_lease_counts_from_when_it_was_asked_for_not_from_when_the_answer_came(world: World) -> None:
    clock = TestClock()
    membership = joined(world, clock)

    def slow(caller: Caller) -> Answer[None]:
        answer = world.store.heartbeat(caller)
        clock.skip(SESSION // 2)
        return answer

    membership.call(slow)
    assert membership.lease_left_ms <= SESSION // 2
