"""Members that acknowledge by themselves, on a real Kafka: gaps close, nothing is lost, no member stops."""

from collections.abc import Callable

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.commits.commit_api import CommitApi, Committed
from coordinator.errors import CommitBeyondReadError, FencedMemberError, MaxIndividualCommitReachedError
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, batch, records, slices_read, subscribed
from streams import eventually, keyed


def ranges(text: str) -> list[OffsetRange]:
    return [OffsetRange.parse(r) for r in text.split()]


def acknowledge(members: Group, end: StreamOffset, tp: TopicPartition, text: str) -> Committed:
    """The member of the batch that ends at `end` commits these offsets, inclusive, of all that the log holds."""
    members.store.positions.report_ends({tp: members.log().bounds([tp])[tp].end}, {})
    with CommitApi.of_member(members.redis_url, members.name, str(end.member)) as commits:
        return commits.commit(tp, ranges(text))


def acknowledge_batch(members: Group, end: StreamOffset, tp: TopicPartition, text: str) -> Committed:
    """The same for what the batch reads that ends at `end`."""
    with CommitApi.of_offset(members.redis_url, end.to_json()) as commits:
        return commits.commit(tp, ranges(text))


def offsets(end: StreamOffset) -> list[int]:
    return sorted(offset for _, offset in records(end))


def test_worked_example_of_gap_amending_with_a_real_log(members: Group, tp: TopicPartition) -> None:
    """Stable 40, IC [43-45],[48-49], fetch [40-50]: exactly [41-42],[46-47],[50-50] is delivered and committed."""
    service = members.started(subscribed(tp))
    members.kafka.produce(tp.topic, keyed(36, 5))
    first = batch(service, StreamOffset(members.name))
    members.kafka.produce(tp.topic, keyed(10, 41))
    assert acknowledge(members, first, tp, "43-45 48-49").held == 2

    second = batch(service, first)
    assert offsets(second) == [41, 42, 46, 47, 50]
    assert members.state.stable[tp] == 41
    assert service.next_offset(second, UNLIMITED) is None
    assert members.state.stable[tp] == 51
    assert not members.redis.exists(GroupKeys(members.name).ics(tp))


@pytest.mark.parametrize("before_the_plan", [True, False], ids=["before the plan", "between plan and commit"])
def test_individual_commits_may_be_deleted_at_any_time(
    members: Group, tp: TopicPartition, before_the_plan: bool
) -> None:
    service, first = members.begun(subscribed(tp))
    members.kafka.produce(tp.topic, keyed(10, 5))
    acknowledge(members, first, tp, "7-8 12-12")
    if before_the_plan:
        members.redis.delete(GroupKeys(members.name).ics(tp))
        assert offsets(batch(service, first)) == list(range(5, 15))
        return
    second = batch(service, first)
    assert offsets(second) == [5, 6, 9, 10, 11, 13, 14]
    members.redis.delete(GroupKeys(members.name).ics(tp))
    third = batch(service, second)
    assert offsets(third) == [7, 8, 12]
    assert members.state.stable[tp] == 7
    assert service.next_offset(third, UNLIMITED) is None
    assert members.state.stable[tp] == 15


def test_a_replay_reads_the_same_records_after_acknowledgements(members: Group, tp: TopicPartition) -> None:
    _, first = members.begun(subscribed(tp))
    acknowledge(members, first, tp, "2-3")
    again = members.service(subscribed(tp))
    assert slices_read(again, first) == tuple(sorted(first.slices))
    with CommitApi.of_offset(members.redis_url, first.to_json()) as commits:
        assert commits.commit(tp, ranges("0-1 4-4")).stable == 5
    assert again.next_offset(first, UNLIMITED) is None


def test_a_replay_on_request_reads_only_records_without_an_acknowledgement(members: Group, tp: TopicPartition) -> None:
    settings = GroupSettings(members.name, session_ms=60_000, replay_acknowledged=False)
    _, first = members.begun(subscribed(tp), settings=settings)
    acknowledge(members, first, tp, "0-0 2-3")
    again = members.service(subscribed(tp), settings=settings)

    def read() -> set[int]:
        return {o for s in slices_read(again, first) for o in range(s.offsets.start, s.offsets.until)}

    assert read() == {1, 4}
    acknowledge(members, first, tp, "4-4")
    assert read() == {1, 4}, "a second call has the same answer"
    members.redis.delete(GroupKeys(members.name).ics(tp))
    assert again.next_offset(first, UNLIMITED) is None
    assert members.state.stable[tp] == 5, "acknowledged records are done, though Redis lost their commits"


def test_a_replay_on_request_has_records_again_whose_commits_were_deleted(members: Group, tp: TopicPartition) -> None:
    settings = GroupSettings(members.name, session_ms=60_000, replay_acknowledged=False)
    _, first = members.begun(subscribed(tp), settings=settings)
    acknowledge(members, first, tp, "0-0 2-3")
    members.redis.delete(GroupKeys(members.name).ics(tp))
    again = members.service(subscribed(tp), settings=settings)
    assert {s.offsets for s in slices_read(again, first)} == {OffsetRange(1, 5)}


def test_an_heir_reads_only_records_without_an_acknowledgement(members: Group, tp: TopicPartition) -> None:
    dies, end = members.begun(subscribed(tp))
    acknowledge_batch(members, end, tp, "1-2 4-4")
    members.lose(dies)
    heir, ends = members.service(subscribed(tp)), list[StreamOffset]()

    def taken_over() -> bool:
        ends.extend(filter(None, [heir.next_offset(StreamOffset(members.name), UNLIMITED)]))
        return {member for _, _, member in members.state.owners[tp]} == {heir.member}

    eventually(taken_over, "the heir owns every hash")
    assert offsets(ends[-1]) == [0, 3]
    with pytest.raises(FencedMemberError):
        acknowledge_batch(members, end, tp, "0-0")


def test_available_now_ends_when_the_rest_was_acknowledged(members: Group, tp: TopicPartition) -> None:
    service = members.aiming(subscribed(tp))
    first = batch(service, StreamOffset(members.name))
    assert acknowledge_batch(members, first, tp, "0-4").stable == 5
    assert service.next_offset(first, UNLIMITED) is None
    service.leave()


@pytest.mark.parametrize("of", [acknowledge, acknowledge_batch], ids=["of a member", "of a batch"])
def test_an_offset_beyond_the_log_end_is_refused_and_read_when_it_exists(
    members: Group, tp: TopicPartition, of: Callable[[Group, StreamOffset, TopicPartition, str], Committed]
) -> None:
    service, first = members.begun(subscribed(tp))
    with pytest.raises(CommitBeyondReadError, match="includes offset 5"):
        of(members, first, tp, "7-7")
    members.kafka.produce(tp.topic, keyed(5, 5))
    assert offsets(batch(service, first)) == [5, 6, 7, 8, 9]


def test_at_the_cap_the_lane_behind_works_those_ahead_wait_and_the_group_rebalances(
    members: Group, tp: TopicPartition
) -> None:
    """Ahead has read to offset 9, behind to 4; behind has acknowledged two offsets above, as many as may be held."""
    settings = GroupSettings(members.name, session_ms=60_000, max_individual_commits=2)
    ahead, behind = (members.service(subscribed(tp), settings=settings) for _ in range(2))
    nothing = StreamOffset(members.name)
    ahead.first_positions()
    a = batch(ahead, nothing)
    assert behind.next_offset(nothing, UNLIMITED) is None  # it joins, and ahead still owns everything
    assert ahead.next_offset(a, UNLIMITED) is None  # commits, and releases one half
    assert behind.next_offset(nothing, UNLIMITED) is None
    members.kafka.produce(tp.topic, keyed(5, 5))
    a, b = batch(ahead, a), batch(behind, nothing)
    members.kafka.produce(tp.topic, keyed(10, 10))
    assert acknowledge(members, b, tp, "12-12 14-14").held == 2
    generation = members.state.meta["generation"]
    with pytest.raises(MaxIndividualCommitReachedError):
        acknowledge(members, b, tp, "16-16")

    members.clock.skip(1_000)
    assert ahead.next_offset(a, UNLIMITED) is None
    assert {line.why for line in ahead.lanes.lines} == {"ceiling: individual commits"}
    assert members.events.count("cap") == 1
    assert int(members.state.meta["generation"]) == int(generation) + 1
    b = batch(behind, b)
    assert offsets(b) == [10, 11, 13, *range(15, 20)]
    assert behind.next_offset(b, UNLIMITED) is None
    assert offsets(batch(ahead, a)) == list(range(10, 20))
