"""The name of the group is that of a share or streams group of Kafka, which holds no offsets of ours: so no mirror."""

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


@pytest.fixture
def shared(members: Group, tp: TopicPartition) -> Group:
    """A group whose name is that of a share group, which has read the five records."""
    share(members.kafka, members.name, tp.topic, dict.fromkeys(range(5), AcknowledgeType.ACCEPT), 5)
    members.kafka.produce(tp.topic, keyed(3))
    return members


def test_a_start_is_refused_by_name(shared: Group, tp: TopicPartition) -> None:
    service = shared.service(subscribed(tp), Latest())
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


def test_an_offset_cannot_be_committed_there(shared: Group, tp: TopicPartition) -> None:
    with pytest.raises(GroupTypeError, match=f"'{shared.name}' is no group of consumers"):
        shared.log().commit_group_offsets(shared.name, {tp: (5, "")})


@pytest.mark.parametrize("settings", [{}, {"api_version": (2, 7)}])
def test_a_free_name_and_one_of_consumers_are_fine(
    members: Group, tp: TopicPartition, settings: dict[str, object]
) -> None:
    with closing(kafka_log(members.kafka.bootstrap, settings)) as log:
        log.must_hold_offsets(members.name)
        kafka_groups.commit(members.kafka.bootstrap, members.name, tp.topic, {0: 2})
        log.must_hold_offsets(members.name)
