"""A standby on a real broker and a real Redis, without Spark: lost owners, restarts, losses of state."""

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.group_state import STANDBY, WORKING
from coordinator.tools.operations.views import view
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, batch, batches, beating, beats, read, records, subscribed
from streams import eventually, keyed

LONG_MS, SHORT_MS = 60_000, 1_000  # a lease that outlives a slow machine's pauses, and one that ends soon


def member(members: Group, tp: TopicPartition, *, session_ms: int = LONG_MS, standby: bool = True) -> Service:
    """A query after its first call."""
    settings = GroupSettings(members.name, capacity=2, session_ms=session_ms, standby=standby)
    return members.started(subscribed(tp), settings=settings)


def empty(members: Group) -> StreamOffset:
    return StreamOffset(members.name)


def states(members: Group) -> dict[str, str]:
    return {m.member: m.state for m in view(members.name, members.state).members}


def confirmed(members: Group, service: Service) -> StreamOffset:
    """The last offset of a query that has read everything, and has committed it."""
    return [empty(members), *batches(service, empty(members))][-1]


def taken_over(members: Group, standby: Service) -> StreamOffset:
    """The first batch of a standby, as soon as it has one."""
    ends: list[StreamOffset] = []

    def planned() -> bool:
        ends.extend(filter(None, [standby.next_offset(empty(members), UNLIMITED)]))
        return bool(ends)

    eventually(planned, "it takes over")
    return ends[0]


@pytest.mark.parametrize("ordinary", [False, True], ids=["an owner that was a standby", "an ordinary owner"])
def test_a_standby_reads_nothing_until_the_owner_dies_and_then_goes_on_at_the_position(
    members: Group, tp: TopicPartition, ordinary: bool
) -> None:
    owner = member(members, tp, standby=not ordinary)
    standby = member(members, tp)
    with beating(owner):
        confirmed(members, owner)
        assert standby.next_offset(empty(members), UNLIMITED) is None
        assert states(members) == {owner.member: WORKING, standby.member: STANDBY}
        assert view(members.name, members.state).state == "Stable"
    members.lose(owner)
    members.kafka.produce(tp.topic, keyed(4, first=5))
    found = taken_over(members, standby)
    assert records(found) == read(tp, 5, 9)
    assert {m for _, _, m in members.state.owners[tp]} == {standby.member}


def test_a_standby_takes_over_the_unconfirmed_batch_of_a_dead_owner(members: Group, tp: TopicPartition) -> None:
    owner = member(members, tp)
    lost = batch(owner, empty(members))
    members.lose(owner)
    standby = member(members, tp)
    found = taken_over(members, standby)
    assert records(found) == records(lost)
    assert owner.next_offset(lost, UNLIMITED) is None, "its commit is refused, and it owns nothing"
    assert owner.state.life.role == STANDBY


def test_an_owner_that_leaves_hands_over_at_once(members: Group, tp: TopicPartition) -> None:
    owner, standby = member(members, tp), member(members, tp)
    confirmed(members, owner)
    assert standby.next_offset(empty(members), UNLIMITED) is None
    owner.leave()
    members.kafka.produce(tp.topic, keyed(4, first=5))
    assert records(batch(standby, empty(members))) == read(tp, 5, 9)


def test_after_a_loss_of_state_the_one_that_took_over_still_works(members: Group, tp: TopicPartition) -> None:
    gone, second, third = member(members, tp), member(members, tp, session_ms=SHORT_MS), member(members, tp)
    confirmed(members, gone)
    gone.leave()
    end = confirmed(members, second)
    assert third.next_offset(empty(members), UNLIMITED) is None
    members.lose_everything()
    members.kafka.produce(tp.topic, keyed(4, first=5))
    with beating(third):
        eventually(lambda: beats(second) and second.next_offset(end, UNLIMITED) is not None, "it reads on")
        third.next_offset(empty(members), UNLIMITED)
    assert states(members) == {second.member: WORKING, third.member: STANDBY}
