"""Where members begin, and what they keep in Redis: a real broker and a real Redis, without Spark."""

from collections.abc import Sequence

import pytest

import kafka_groups
from coordinator.errors import (
    CheckpointMismatchError,
    StartingOffsetError,
)
from coordinator.progress.ownership import Fact
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.client import RedisClient
from coordinator.redis.verb import Reply
from coordinator.values.offset_spec import AtOffsets, Earliest, Latest, OffsetSpec
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition, Topics
from group_services import UNLIMITED, Group, batches, read, records, run, subscribed
from streams import keyed

# -- first positions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("starting", "committed", "expected"),
    [
        pytest.param(Earliest(), None, 0, id="a new group begins at startingOffsets: the beginning"),
        pytest.param(Latest(), None, 5, id="a new group begins at startingOffsets: the end"),
        pytest.param(None, None, 2, id="a new group begins at startingOffsets: an offset"),
        pytest.param(Earliest(), 3, 3, id="Kafka's own group goes before the starting offsets"),
        pytest.param(Latest(), 0, 0, id="also where it is at offset 0"),
    ],
)
def test_a_new_group_begins(
    members: Group, tp: TopicPartition, starting: OffsetSpec | None, committed: int | None, expected: int
) -> None:
    if committed is not None:
        kafka_groups.commit(members.kafka.bootstrap, members.name, tp.topic, {0: committed})
    members.service(subscribed(tp), starting or AtOffsets({tp: 2})).first_positions()
    assert members.state.stable == {tp: expected}
    assert members.events == ["found"]
    assert kafka_groups.committed(members.kafka.bootstrap, members.name, tp.topic) == {0: expected}


def test_redis_goes_before_everything(members: Group, tp: TopicPartition) -> None:
    members.service(subscribed(tp), AtOffsets({tp: 2})).first_positions()
    kafka_groups.commit(members.kafka.bootstrap, members.name, tp.topic, {0: 4})
    members.service(subscribed(tp), Latest()).first_positions()
    assert members.state.stable == {tp: 2}


def test_first_positions_are_set_once_though_the_log_grows(members: Group, tp: TopicPartition) -> None:
    service = members.started(subscribed(tp), Latest())
    members.kafka.produce(tp.topic, keyed(5))
    service.first_positions()
    assert members.state.stable == {tp: 5}


def test_an_added_topic_begins_at_its_starting_offset_and_the_others_stay(members: Group, tp: TopicPartition) -> None:
    run(members, subscribed(tp))
    added = TopicPartition(members.kafka.create_topic("added"), 0)
    members.kafka.produce(added.topic, keyed(4))
    members.service(Topics((tp.topic, added.topic)), AtOffsets({tp: 0, added: 1})).first_positions()
    assert members.state.stable == {tp: 5, added: 1}


def test_a_partition_that_is_added_begins_at_its_beginning(members: Group, tp: TopicPartition) -> None:
    run(members, subscribed(tp))
    members.kafka.add_partitions(tp.topic, 2)
    members.service(subscribed(tp), Latest()).first_positions()
    assert members.state.stable == {tp: 5, TopicPartition(tp.topic, 1): 0}


def test_starting_offsets_outside_the_log_create_no_group(members: Group, tp: TopicPartition) -> None:
    with pytest.raises(StartingOffsetError):
        members.service(subscribed(tp), AtOffsets({tp: 6})).first_positions()
    assert members.keys == []


# -- what is asked of Redis between two batches ------------------------------------------------


class Listening(RedisClient):
    """Notes which scripts are run."""

    verbs: list[str]

    def run(self, verb: str, keys: Sequence[str], args: Sequence[str]) -> Reply:
        self.verbs.append(verb)
        return super().run(verb, keys, args)


@pytest.mark.parametrize(
    ("raised", "asked", "first"),
    [
        pytest.param(None, False, 5, id="not if the commit has returned them"),
        pytest.param(7, True, 7, id="where an earlier owner has asserted more meanwhile"),
    ],
)
def test_after_a_commit_positions_are_asked_for(
    members: Group, tp: TopicPartition, raised: int | None, *, asked: bool, first: int
) -> None:
    members.client = listening = Listening(members.redis_url)
    listening.verbs = []
    running = batches(members.service(subscribed(tp)), StreamOffset(members.name))
    members.service(subscribed(tp)).first_positions()
    before = next(running)
    members.kafka.produce(tp.topic, keyed(5))
    if raised is not None:
        members.store.positions.claim(before, {tp: (Fact(WHOLE, raised),)})
    listening.verbs.clear()
    assert records(next(running)) == read(tp, first, 10)
    assert ("commit" in listening.verbs, "acquire" in listening.verbs) == (True, asked)


# -- checkpoints, AvailableNow, expiry -----------------------------------------------------------


def test_a_topic_that_is_not_subscribed_to_is_another_checkpoints(members: Group, tp: TopicPartition) -> None:
    end = run(members, subscribed(tp))
    other = TopicPartition(members.kafka.create_topic("other"), 0)
    with pytest.raises(CheckpointMismatchError, match=tp.topic):
        members.service(subscribed(other)).next_offset(end, UNLIMITED)
    with pytest.raises(CheckpointMismatchError, match="group 'elsewhere'"):
        members.service(subscribed(tp)).next_offset(StreamOffset("elsewhere"), UNLIMITED)


def test_available_now_leaves_later_records_to_the_next_run(members: Group, tp: TopicPartition) -> None:
    service = members.aiming(subscribed(tp))
    members.kafka.produce(tp.topic, keyed(4))
    assert records(*batches(service, StreamOffset(members.name))) == read(tp, 0, 5)
    service.leave()
    assert records(run(members, subscribed(tp))) == read(tp, 5, 9)


def expiries_ms(members: Group) -> dict[str, int]:
    """The remaining time of each key of the group; -1 without an expiry."""
    with members.redis.pipeline() as pipeline:
        for key in members.keys:
            pipeline.pttl(key)
        return dict(zip(members.keys, pipeline.execute(), strict=True))


def test_a_run_shorter_than_a_heartbeat_pushes_the_groups_expiry_too(members: Group, tp: TopicPartition) -> None:
    run(members, subscribed(tp))
    for key in members.keys:
        members.redis.pexpire(key, 60_000)  # as if the group had lain idle for nearly its retention
    members.kafka.produce(tp.topic, keyed(4))
    assert records(run(members, subscribed(tp))) == read(tp, 5, 9)
    left = expiries_ms(members)
    assert min(left.values()) > 10_080 * 60_000 - 60_000, left
