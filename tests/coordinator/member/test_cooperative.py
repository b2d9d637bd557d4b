"""Members of a group without order share partitions by offsets: on a real Kafka and a real Redis, without Spark."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.errors import (
    IndividualCommitNotAllowedError,
    OtherOrderingError,
    StateLostError,
    TopicRangeFetchNotAllowedError,
)
from coordinator.member.limits import Limits
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, batches, beats, read, records, slices_read, subscribed
from streams import eventually, keyed
from topics import Kafka

TEN = Limits(max_offsets=10)


@pytest.fixture
def forty(kafka: Kafka) -> TopicPartition:
    """The one partition of a new topic with forty records."""
    topic = kafka.create_topic("cooperative")
    kafka.produce(topic, keyed(40))
    return TopicPartition(topic, 0)


def member(members: Group, tp: TopicPartition, *, session_ms: int = 60_000, ordering: str = "none") -> Service:
    settings = GroupSettings(members.name, capacity=2, session_ms=session_ms)
    return members.service(subscribed(tp), settings=replace(settings, ordering="none" if ordering == "none" else "key"))


def first_batch(members: Group, one: Service, limits: Limits = TEN) -> StreamOffset:
    one.first_positions()
    return planned(one, StreamOffset(members.name), limits)


def planned(one: Service, start: StreamOffset, limits: Limits = TEN) -> StreamOffset:
    end = one.next_offset(start, limits)
    assert end is not None
    return StreamOffset.from_json(end.to_json())  # as Spark's WAL returns it


def read_all(one: Service, start: StreamOffset) -> list[StreamOffset]:
    """The batches of ten offsets until nothing is left; each is read and completed by the sink."""
    ends = []
    while (end := one.next_offset(start, TEN)) is not None:
        one.tasks(end)
        ends.append(end)
        start = end
    return ends


def stable(members: Group, tp: TopicPartition) -> int:
    return members.store.positions.stable((tp.topic,))[tp]


def test_two_members_read_neighbouring_slices_and_commit_in_any_order(members: Group, forty: TopicPartition) -> None:
    one, two = member(members, forty), member(members, forty)
    first, second = first_batch(members, one), first_batch(members, two)
    assert (records(first), records(second)) == (read(forty, 0, 10), read(forty, 10, 20))
    assert [len(s.offsets) for s in slices_read(one, first)] == [5, 5]
    two.tasks(second)
    third = planned(two, second)
    assert (records(third), stable(members, forty)) == (read(forty, 20, 30), 0)
    assert records(planned(one, first)) == read(forty, 30, 40)
    assert stable(members, forty) == 20


@pytest.mark.parametrize(
    ("name", "error"),
    [("accept.individual.commit", IndividualCommitNotAllowedError), ("topic", TopicRangeFetchNotAllowedError)],
)
def test_a_policy_that_forbids_sharing_ends_a_running_query_after_its_commit(
    members: Group, forty: TopicPartition, name: str, error: type[Exception]
) -> None:
    """Rule: sharing-policies. Without order, members have no other way to read a partition."""
    one = member(members, forty, session_ms=3_000)  # so long it proves its positions after the loss
    end = first_batch(members, one)
    one.tasks(end)
    members.policies.set_policy({f"accept.range.fetch:{forty.topic}" if name == "topic" else name: "false"})
    with pytest.raises(error, match="ordering=none is set, but"):
        planned(one, end)
    assert stable(members, forty) == 10
    members.lose_everything()
    with pytest.raises(error, match="ordering=none is set, but"):
        read_all(one, end)


def test_one_member_reads_everything_once(members: Group, forty: TopicPartition) -> None:
    one = member(members, forty)
    one.first_positions()
    ends = read_all(one, StreamOffset(members.name))
    assert [records(end) for end in ends] == [read(forty, n, n + 10) for n in (0, 10, 20, 30)]
    assert stable(members, forty) == 40


def test_a_restarted_member_replays_the_same_records(members: Group, forty: TopicPartition) -> None:
    one = member(members, forty)
    end = first_batch(members, one)
    before = slices_read(one, end)
    again, other = member(members, forty), member(members, forty)
    assert slices_read(again, end) == before
    assert records(first_batch(members, other)) == read(forty, 10, 20)
    assert records(planned(again, end)) == read(forty, 20, 30)
    assert stable(members, forty) == 10


def test_a_plan_that_never_reached_the_wal_is_planned_again(members: Group, forty: TopicPartition) -> None:
    first_batch(members, one := member(members, forty))
    assert records(planned(one, StreamOffset(members.name))) == read(forty, 0, 10)


def test_a_dead_members_slice_is_served_again_after_its_session(members: Group, forty: TopicPartition) -> None:
    dead, other = member(members, forty), member(members, forty)
    lost = first_batch(members, dead)
    members.lose(dead)
    assert records(lost) == read(forty, 0, 10)
    ends, start = [], StreamOffset(members.name)
    other.first_positions()

    def done() -> bool:
        nonlocal start
        if (end := other.next_offset(start, TEN)) is not None:
            other.tasks(end)
            ends.append(end)
            start = end
        return stable(members, forty) == 40

    eventually(done, "the other member reads the slice of the dead one")
    assert records(*ends) == read(forty, 0, 40)
    assert sum(len(records(end)) for end in ends) == 40
    replaying = member(members, forty)
    assert slices_read(replaying, lost) == ()
    assert replaying.next_offset(lost, TEN) is not None  # without the slices that it did not read


def test_a_member_that_leaves_keeps_an_unconfirmed_slice_until_its_lease_ends(
    members: Group, forty: TopicPartition
) -> None:
    one, two = member(members, forty), member(members, forty)
    end = first_batch(members, one)
    one.tasks(end)
    one.leave()
    assert records(first_batch(members, two)) == read(forty, 10, 20)


def test_a_member_that_leaves_frees_the_rest_at_once(members: Group, forty: TopicPartition) -> None:
    one = member(members, forty)
    one.first_positions()
    read_all(one, StreamOffset(members.name))
    one.leave()
    assert members.redis.exists(GroupKeys(members.name).leases) == 0


def test_available_now_ends_when_all_is_done_by_any_member(members: Group, forty: TopicPartition) -> None:
    one, two = member(members, forty), member(members, forty)
    end = first_batch(members, one)
    two.first_positions()
    two.set_targets()
    with members.losing(one):
        got = records(*batches(two, StreamOffset(members.name)))
    assert got == read(forty, 0, 40)  # the slice of the first one too, which does not go on
    assert records(end) < got


def test_a_lost_redis_recovers_from_the_mirror(members: Group, forty: TopicPartition) -> None:
    one = member(members, forty, session_ms=500)
    end = first_batch(members, one)
    one.tasks(end)
    members.lose_everything()
    again = planned(one, end)
    assert records(again) == read(forty, 10, 20)  # the process knows that it has read the first slice
    one.tasks(again)
    read_all(one, again)
    assert stable(members, forty) == 40


def test_another_ordering_is_refused_once_the_other_member_renews_its_lease(
    members: Group, forty: TopicPartition
) -> None:
    first_batch(members, old := member(members, forty))
    new = member(members, forty, ordering="key")
    with ThreadPoolExecutor(1) as own_thread:
        refused = own_thread.submit(first_batch, members, new)
        eventually(lambda: beats(old) and refused.done(), "the lease of the old member grows")
    with pytest.raises(OtherOrderingError) as error:
        refused.result()
    words = f"member {old.member} of group {members.name!r} has ordering=none, and this query has ordering=key"
    assert error.value.what == words
    assert set(members.state.members) == {old.member}


@pytest.mark.parametrize(("before", "after"), [("key", "none"), ("none", "key")])
def test_another_ordering_waits_for_the_lease_of_a_dead_member(
    members: Group, forty: TopicPartition, before: str, after: str
) -> None:
    dead = member(members, forty, ordering=before)
    dead.tasks(first_batch(members, dead))
    new = member(members, forty, ordering=after)
    with members.losing(dead):
        new.first_positions()
        assert records(*batches(new, StreamOffset(members.name))) == read(forty, 0, 40)


@pytest.mark.parametrize(("before", "after"), [("key", "none"), ("none", "key")])
def test_an_empty_group_changes_its_ordering_and_goes_on(
    members: Group, forty: TopicPartition, before: str, after: str
) -> None:
    one = member(members, forty, ordering=before)
    first = first_batch(members, one)
    one.tasks(first)
    second = planned(one, first)
    one.leave()  # keeps the lease, for the second batch is unconfirmed; its next life may change the ordering
    other = member(members, forty, ordering=after)
    assert slices_read(other, second) == ()
    then = planned(other, second, UNLIMITED)
    assert records(then) == read(forty, 10, 40)


def test_positions_without_a_proof_are_not_invented(members: Group, forty: TopicPartition) -> None:
    one = member(members, forty, session_ms=500)
    end = first_batch(members, one)
    one.tasks(end)
    members.lose_everything()
    members.log().delete_group_offsets(members.name, [forty])
    with pytest.raises(StateLostError):
        one.next_offset(end, TEN)


def test_a_look_sees_the_last_offset_that_is_done_above_a_gap(members: Group, forty: TopicPartition) -> None:
    """A log that ends below it has lost records; the position alone does not show that (rule: named-data-loss)."""
    slow, other = member(members, forty), member(members, forty)
    first_batch(members, slow)
    above = first_batch(members, other)
    other.tasks(above)
    other.next_offset(above, TEN)
    assert stable(members, forty) == 0
    other.leave()
    slow.next_offset(StreamOffset(members.name), TEN)  # it looks again
    (segment,) = slow.state.owning.acquired.progress[forty].segments
    assert (segment.position, segment.reach) == (0, 20)
