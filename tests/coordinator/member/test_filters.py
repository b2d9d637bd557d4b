"""Members of a group agree on a filter, and a batch is replayed with its own filter only. No Spark."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.errors import FilterChangedError, FilterMismatchError
from coordinator.member.service import Service
from coordinator.member.standalone import Standalone
from coordinator.plan.planning import Cutting
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.offset_spec import Earliest
from coordinator.values.record_filter import EVERYTHING, RecordFilter
from coordinator.values.subscription import TopicPartition
from group_services import (
    LONG_MS,
    UNLIMITED,
    Group,
    batch,
    batches,
    beats,
    slices_read,
    subscribed,
    whole,
)
from streams import eventually

A, B = RecordFilter(deny=frozenset([b"a"])), RecordFilter(deny=frozenset([b"b"]))


def member(members: Group, tp: TopicPartition, of: RecordFilter) -> Service:
    settings = GroupSettings(members.name, capacity=2, session_ms=LONG_MS, filter=of)
    return members.started(subscribed(tp), settings=settings)


def joins(members: Group, service: Service) -> StreamOffset | None:
    return service.next_offset(StreamOffset(members.name), UNLIMITED)


def filter_in_force(members: Group) -> str:
    return str(members.redis.hget(GroupKeys(members.name).meta, "filter") or "")


@pytest.mark.parametrize(
    ("theirs", "ours", "words"),
    [
        pytest.param(A, B, f"has the filter '{A.text}', and this query has the filter '{B.text}'", id="another"),
        pytest.param(EVERYTHING, B, f"has no filter, and this query has the filter '{B.text}'", id="none before"),
        pytest.param(A, EVERYTHING, f"has the filter '{A.text}', and this query has no filter", id="none now"),
    ],
)
def test_a_member_with_another_filter_is_refused_by_name_while_the_old_one_renews_its_lease(
    members: Group, tp: TopicPartition, theirs: RecordFilter, ours: RecordFilter, words: str
) -> None:
    old, new = member(members, tp, theirs), member(members, tp, ours)
    joins(members, old)
    with ThreadPoolExecutor(1) as own_thread:
        refused = own_thread.submit(joins, members, new)
        eventually(lambda: beats(old) and refused.done(), "the lease of the old member grows")
    with pytest.raises(FilterMismatchError) as error:
        refused.result()
    assert f"member {old.member} of group {members.name!r} {words}" in error.value.what
    assert "stop the members that have the other filter" in error.value.remedy
    assert set(members.state.members) == {old.member}
    assert filter_in_force(members) == theirs.text


def test_a_lone_member_restarts_with_another_filter(members: Group, tp: TopicPartition) -> None:
    before = member(members, tp, A)
    done = [StreamOffset(members.name), *batches(before, StreamOffset(members.name))][-1]
    after = member(members, tp, B)
    assert after.next_offset(done, UNLIMITED) is None
    assert after.member == before.member
    assert filter_in_force(members) == B.text


@pytest.fixture
def planned(members: Group, tp: TopicPartition) -> StreamOffset:
    """A batch that was planned under the filter A, and not completed."""
    query = member(members, tp, A)
    end = batch(query, StreamOffset(members.name))
    members.lose(query)
    return end


def test_a_batch_whose_ranges_others_have_acquired_binds_no_filter(
    members: Group, tp: TopicPartition, planned: StreamOffset
) -> None:
    """All members restart with another filter, this one last."""
    other = member(members, tp, B)
    assert joins(members, other)
    late = member(members, tp, B)
    assert late.tasks(planned) == ()
    assert set(members.state.members) == {late.member, other.member}


def test_a_batch_that_was_planned_without_a_filter_is_not_replayed_with_one(members: Group, tp: TopicPartition) -> None:
    before = member(members, tp, EVERYTHING)
    planned = batch(before, StreamOffset(members.name))
    members.lose(before)
    assert "filter" not in planned.to_json()["#"]
    with pytest.raises(FilterChangedError, match="was planned without a filter"):
        member(members, tp, A).tasks(planned)


def standalone(members: Group, tp: TopicPartition, of: RecordFilter) -> Standalone:
    settings = GroupSettings("", filter=of)
    return Standalone(settings, whole(tp), Earliest(), Cutting(2), log=members.log(), clock=members.clock)


def test_a_query_without_a_group_replays_with_its_own_filter_only(members: Group, tp: TopicPartition) -> None:
    query = standalone(members, tp, A)
    planned = query.next_offset(query.initial(), UNLIMITED)
    assert planned
    with pytest.raises(FilterChangedError):
        standalone(members, tp, B).tasks(planned)
    assert slices_read(standalone(members, tp, A), planned) == tuple(sorted(planned.slices))
    assert standalone(members, tp, B).next_offset(planned, UNLIMITED) is None, "a completed batch binds nobody"
