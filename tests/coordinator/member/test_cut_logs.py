"""A log is cut while two members share its partition (rule: leader-epoch-facts). On real servers, without Spark."""

import pytest

from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.subscription import Topic, TopicPartition
from group_services import UNLIMITED, Group, batch, read, records, subscribed
from kafka_logs import Elected
from streams import keyed


@pytest.fixture
def elected(members: Group) -> Elected:
    return Elected(members.log())


def halves(
    members: Group, elected: Elected, other: Elected, tp: TopicPartition
) -> tuple[Service, Service, StreamOffset, StreamOffset]:
    """Two members with a half of the partition each, and their offsets at 5. Then 5-9 are produced."""
    one, two = (
        members.service(subscribed(tp), log=log, fail_on_data_loss=False, session_ms=60_000) for log in (elected, other)
    )
    one.first_positions()
    start = StreamOffset(members.name)
    end = batch(one, start)
    assert two.next_offset(start, UNLIMITED) is None, "the first owns everything"
    assert one.next_offset(end, UNLIMITED) is None, "it commits 5, and releases a half"
    assert two.next_offset(start, UNLIMITED) is None, "the second acquires that half"
    members.kafka.produce(tp.topic, keyed(5))
    return one, two, end, start


def sharing(
    members: Group, elected: Elected, other: Elected, tp: TopicPartition
) -> tuple[Service, Service, StreamOffset, StreamOffset]:
    """The same members, and the batches of 5-9 that are in their sinks."""
    one, two, *starts = halves(members, elected, other, tp)
    ends = batch(one, starts[0]), batch(two, starts[1])
    assert records(ends[0]) == records(ends[1]) == read(tp, 5, 10)
    return one, two, *ends


def positions(members: Group, tp: TopicPartition) -> set[int]:
    return {position for _, position in members.store.positions.positions([tp])[tp]}


def leader_epoch(members: Group, tp: TopicPartition) -> str:
    return str(members.redis.hget(GroupKeys(members.name).epoch(tp.topic), "0")).partition("@")[0]


def test_a_batch_of_the_log_before_a_cut_skips_no_record_after_it(
    members: Group, elected: Elected, tp: TopicPartition
) -> None:
    """One member finds the cut, and recreates positions while the other still reads its batch."""
    one, two, of_one, of_two = sharing(members, elected, elected, tp)
    elected.elect(tp, at=8)
    members.kafka.produce(tp.topic, keyed(2))
    one.next_offset(of_one, UNLIMITED)
    assert (members.events.count("loss"), positions(members, tp)) == (1, {5, 8})
    assert leader_epoch(members, tp) == "1"
    then = two.next_offset(of_two, UNLIMITED)
    assert positions(members, tp) == {8}, "its half was read up to the cut, and no further"
    assert then is not None
    assert records(then) == read(tp, 8, 12)


def test_a_batch_of_a_log_without_a_cut_counts_whole_after_an_election(
    members: Group, elected: Elected, tp: TopicPartition
) -> None:
    one, two, of_one, of_two = sharing(members, elected, elected, tp)
    elected.elect(tp, at=10)
    members.kafka.produce(tp.topic, keyed(2))
    one.next_offset(of_one, UNLIMITED)
    topics = {tp.topic: Topic(tp.topic, members.state.topics[tp.topic].id, (0,))}
    members.store.positions.recreate(topics, {tp: 5})  # of a loss that somebody else accepts: all owners are gone
    two.next_offset(of_two, UNLIMITED)
    assert positions(members, tp) == {5, 10}


def test_a_member_that_still_sees_the_former_leader_asserts_nothing_of_the_cut_log(
    members: Group, elected: Elected, tp: TopicPartition
) -> None:
    former = Elected(elected.log, elected.began, behind=True)
    one, two, of_one, of_two = sharing(members, elected, former, tp)
    elected.elect(tp, at=8)
    members.kafka.produce(tp.topic, keyed(2))
    one.next_offset(of_one, UNLIMITED)
    two.next_offset(of_two, UNLIMITED)
    assert positions(members, tp) == {5, 8}
    assert leader_epoch(members, tp) == "1", "the member's later look does not replace it"


def test_a_batch_across_a_cut_that_another_member_finds_before_its_commit_skips_no_record(
    members: Group, elected: Elected, tp: TopicPartition
) -> None:
    """Nobody has committed the records that are gone, so only the extent in Redis shows the cut."""
    former = Elected(elected.log, elected.began, behind=True)
    one, two, of_one, start = halves(members, elected, former, tp)
    of_two = batch(two, start)
    elected.elect(tp, at=8)
    members.kafka.produce(tp.topic, keyed(2))
    one.next_offset(of_one, UNLIMITED)
    two.next_offset(of_two, UNLIMITED)
    assert (members.events.count("loss"), positions(members, tp)) == (1, {5})
