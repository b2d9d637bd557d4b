"""The group's name belongs to a group of Kafka without offsets of ours: a share or streams group. So no mirror."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import AcknowledgeType

import kafka_groups
import streams_groups
from command_runs import Run
from coordinator.errors import GroupTypeError
from coordinator.values.offset_spec import Latest
from coordinator.values.subscription import TopicPartition
from group_services import Group, subscribed
from kafka_logs import kafka_log
from share_groups import share
from streams import keyed
from topics import Kafka


@pytest.fixture(scope="module")
def read_by_shares(kafka: Kafka) -> TopicPartition:
    """A partition of which a share group has read the first five records."""
    tp = TopicPartition(kafka.create_topic("shared"), 0)
    kafka.produce(tp.topic, keyed(5))
    share(kafka, f"of-{tp.topic}", tp.topic, dict.fromkeys(range(5), AcknowledgeType.ACCEPT), 5)
    kafka.produce(tp.topic, keyed(3))
    return tp


@pytest.fixture
def shared(kafka: Kafka, redis_url: str, read_by_shares: TopicPartition) -> Iterator[Group]:
    """A group whose name is that of the share group; no test may make it a group of ours."""
    with closing(Group(kafka, redis_url, f"of-{read_by_shares.topic}")) as made:
        yield made


def test_a_start_is_refused_by_name(shared: Group, read_by_shares: TopicPartition) -> None:
    service = shared.service(subscribed(read_by_shares), Latest())
    with pytest.raises(GroupTypeError, match=f"'{shared.name}' is a share group"):
        service.first_positions()
    assert not shared.keys, "nothing was written"


def test_the_name_of_a_streams_group_is_refused_at_a_start_and_an_import(
    members: Group, tp: TopicPartition, run: Run
) -> None:
    members.log().must_hold_offsets(members.name)  # there is a coordinator from now on
    streams_groups.join(members.kafka, members.name, tp.topic)
    service = members.service(subscribed(tp), Latest())
    with pytest.raises(GroupTypeError, match=f"'{members.name}' is a streams group"):
        service.first_positions()
    assert not members.keys, "nothing was written"
    place = "--redis", members.redis_url, "--bootstrap-server", members.kafka.bootstrap
    code, _, err = run("import", members.name, "--from", f"kafka-group:{members.name}", *place)
    assert (code, "GROUP_TYPE" in err, "streams" in err) == (1, True, True), err


def test_an_import_is_refused_by_name(shared: Group, run: Run) -> None:
    place = "--redis", shared.redis_url, "--bootstrap-server", shared.kafka.bootstrap
    code, _, err = run("import", shared.name, "--from", f"share-group:{shared.name}", *place)
    assert (code, "GROUP_TYPE" in err, "is a share group" in err) == (1, True, True), err
    code, _, err = run("import", f"{shared.name}-new", "--from", f"share-group:{shared.name}", *place)
    assert code == 0, err


def test_a_share_group_is_no_consumer_group_to_import(shared: Group, run: Run) -> None:
    place = "--redis", shared.redis_url, "--bootstrap-server", shared.kafka.bootstrap
    code, _, err = run("import", f"{shared.name}-new", "--from", f"kafka-group:{shared.name}", *place)
    assert (code, "GROUP_TYPE" in err) == (1, True), err


def test_an_offset_cannot_be_committed_there(shared: Group, read_by_shares: TopicPartition) -> None:
    with pytest.raises(GroupTypeError, match=f"'{shared.name}' is no group of consumers"):
        shared.log().commit_group_offsets(shared.name, {read_by_shares: (5, "")})


@pytest.mark.parametrize("settings", [{}, {"api_version": (2, 7)}])
def test_a_free_name_and_one_of_consumers_are_fine(
    members: Group, tp: TopicPartition, settings: dict[str, object]
) -> None:
    with closing(kafka_log(members.kafka.bootstrap, settings)) as log:
        log.must_hold_offsets(members.name)
        kafka_groups.commit(members.kafka.bootstrap, members.name, tp.topic, {0: 2})
        log.must_hold_offsets(members.name)
