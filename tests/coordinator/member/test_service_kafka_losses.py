"""Kafka lost records or topics: the query ends, or moves on. On real servers, without Spark."""

from dataclasses import dataclass, replace

import pytest

from command_runs import Run
from coordinator.errors import (
    DataLossError,
)
from coordinator.member.limits import Limits
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import Pattern, TopicPartition
from group_services import UNLIMITED, Group, PatientClock, batch, batches, read, records, run, slices_read, subscribed
from streams import keyed
from topics import Kafka


@dataclass(frozen=True)
class Replay:
    """A service that did not plan a batch, and its end."""

    service: Service
    end: StreamOffset


def recreated_during_a_batch(members: Group, tp: TopicPartition, count: int, *, fail_on_data_loss: bool) -> Replay:
    """A batch of five records, planned and authorised by a member that died; then another topic of that name."""
    _, end = members.begun(subscribed(tp), fail_on_data_loss=fail_on_data_loss)
    members.kafka.recreate_topic(tp.topic)
    members.kafka.produce(tp.topic, keyed(count))
    return Replay(members.service(subscribed(tp), fail_on_data_loss=fail_on_data_loss), end)


def test_the_replay_of_a_batch_onto_a_recreated_topic_is_a_data_loss(members: Group, tp: TopicPartition) -> None:
    replay = recreated_during_a_batch(members, tp, 8, fail_on_data_loss=True)
    with pytest.raises(DataLossError, match="created again"):
        replay.service.tasks(replay.end)


def test_the_replay_of_a_batch_onto_a_recreated_topic_reads_nothing_on_request(
    members: Group, tp: TopicPartition
) -> None:
    replay = recreated_during_a_batch(members, tp, 8, fail_on_data_loss=False)
    assert replay.end.slices != ()
    assert slices_read(replay.service, replay.end) == ()
    assert records(batch(replay.service, replay.end)) == read(tp, 0, 8)


@pytest.mark.usefixtures("short_sessions")
@pytest.mark.parametrize("partitions", [1, 2])
def test_a_topic_created_again_with_more_partitions_is_a_data_loss_too(
    members: Group, tp: TopicPartition, partitions: int
) -> None:
    run(members, subscribed(tp))
    members.kafka.recreate_topic(tp.topic, partitions)
    members.kafka.produce(tp.topic, keyed(8))
    members.clock.skip(2_000)
    with pytest.raises(DataLossError, match="created again"):
        run(members, subscribed(tp))
    run(members, subscribed(tp), fail_on_data_loss=False)
    stable = members.state.stable
    assert (len(stable), sum(stable.values())) == (partitions, 8)


@pytest.mark.parametrize("left", [0, 3])
def test_available_now_ends_when_its_topic_was_recreated_shorter(members: Group, tp: TopicPartition, left: int) -> None:
    service = members.aiming(subscribed(tp), fail_on_data_loss=False)
    end = batch(service, StreamOffset(members.name))
    members.kafka.recreate_topic(tp.topic)
    members.kafka.produce(tp.topic, keyed(left))
    members.clock.skip(2_000)
    assert records(*batches(service, end)) == read(tp, 0, left)
    assert members.state.stable == {tp: left}


@pytest.fixture
def two(kafka: Kafka) -> tuple[TopicPartition, TopicPartition]:
    """Topics that one pattern means, with five records each."""
    first = kafka.create_topic("pattern")
    second = kafka.create_topic(first)
    for topic in (first, second):
        kafka.produce(topic, keyed(5))
    return TopicPartition(first, 0), TopicPartition(second, 0)


def test_a_deleted_topic_of_a_pattern_is_a_data_loss_by_default(
    members: Group, two: tuple[TopicPartition, TopicPartition]
) -> None:
    kept, deleted = two
    service, end = members.begun(Pattern(f"^{kept.topic}"))
    assert records(end) == read(kept, 0, 5) | read(deleted, 0, 5)
    members.kafka.produce(deleted.topic, keyed(3))
    members.kafka.delete_topic(deleted.topic)
    members.clock.skip(2_000)
    with pytest.raises(DataLossError, match=f"{deleted.topic}.*was deleted"):
        service.next_offset(end, UNLIMITED)


@pytest.mark.parametrize("available_now", [True, False])
def test_a_deleted_topic_of_a_pattern_is_skipped_on_request(
    members: Group, two: tuple[TopicPartition, TopicPartition], available_now: bool
) -> None:
    kept, deleted = two
    service = members.started(Pattern(f"^{kept.topic}"), fail_on_data_loss=False)
    members.kafka.produce(kept.topic, keyed(2))
    if available_now:
        service.set_targets()
    end = service.next_offset(StreamOffset(members.name), Limits(max_offsets=4))
    assert end is not None
    service.tasks(end)
    members.kafka.delete_topic(deleted.topic)
    members.clock.skip(2_000)
    later = list(batches(service, end))
    assert {tp.topic for each in later for tp in each.lanes} == {kept.topic}
    assert records(end, *later) >= read(kept, 0, 7)
    assert members.state.stable[kept] == 7


def test_a_checkpoint_beyond_the_log_goes_on_once_an_operator_has_reset_the_group(
    members: Group, tp: TopicPartition, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service, end = members.begun(subscribed(tp))
    assert service.next_offset(end, UNLIMITED) is None
    service.leave()
    lanes = {tp: tuple(x._replace(offsets=(OffsetRange(x.position, 99),)) for x in end.lanes[tp])}
    beyond = replace(end, lanes=lanes)
    members.clock = PatientClock()
    with pytest.raises(DataLossError, match="reset-offsets"):
        members.service(subscribed(tp)).next_offset(beyond, UNLIMITED)
    place = ("--redis", members.redis_url, "--bootstrap-server", members.kafka.bootstrap)
    code, _, err = Run(monkeypatch, capsys)(
        "reset-offsets", members.name, "--all-topics", "--to-earliest", "--execute", *place
    )
    assert code == 0, err
    plan = members.service(subscribed(tp)).next_offset(beyond, UNLIMITED)
    assert plan is not None
    assert records(plan) == read(tp, 0, 5)
