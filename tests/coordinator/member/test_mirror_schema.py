"""A mirror of another schema is refused by name and stays as it is (rule: schema-number): on real servers."""

import logging
from collections.abc import Iterator
from contextlib import closing

import pytest

from coordinator.errors import StateFormatError
from coordinator.kafka.log import KafkaLog
from coordinator.tools.operations.operations import Operator
from coordinator.tools.operations.reset_plan import ToOffset
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, subscribed
from group_services import run as run_query
from kafka_logs import kafka_log
from streams import keyed

pytestmark = pytest.mark.usefixtures("short_sessions")

NEWER = (3, "coop-kafka v2 any text")
REFUSAL = "schema '2' of the mirror, this coop-kafka reads schema '1'"


@pytest.fixture
def log(members: Group) -> Iterator[KafkaLog]:
    with closing(kafka_log(members.kafka.bootstrap)) as found:
        yield found


def test_a_mirror_of_another_schema_creates_no_group(members: Group, tp: TopicPartition, log: KafkaLog) -> None:
    log.commit_group_offsets(members.name, {tp: NEWER})
    with pytest.raises(StateFormatError, match=REFUSAL):
        members.service(subscribed(tp)).first_positions()
    assert members.keys == []
    assert log.group_offsets(members.name) == {tp: NEWER}


def test_after_a_loss_of_state_a_mirror_of_another_schema_recovers_nothing(
    members: Group, tp: TopicPartition, log: KafkaLog
) -> None:
    end = run_query(members, subscribed(tp))
    log.commit_group_offsets(members.name, {tp: NEWER})
    members.lose_everything()
    with pytest.raises(StateFormatError, match=REFUSAL):
        members.service(subscribed(tp)).next_offset(end, UNLIMITED)
    assert members.keys == []


def test_a_running_member_logs_a_mirror_of_another_schema_and_does_not_overwrite_it(
    members: Group, tp: TopicPartition, log: KafkaLog, caplog: pytest.LogCaptureFixture
) -> None:
    service, end = members.begun(subscribed(tp))
    log.commit_group_offsets(members.name, {tp: NEWER})
    members.kafka.produce(tp.topic, keyed(1))
    with caplog.at_level(logging.WARNING):
        assert service.next_offset(end, UNLIMITED) is not None
        service.leave()
    assert "STATE_FORMAT" in caplog.text
    assert members.state.stable == {tp: 5}
    assert log.group_offsets(members.name) == {tp: NEWER}


def test_a_reset_and_a_delete_refuse_a_mirror_of_another_schema(
    members: Group, tp: TopicPartition, log: KafkaLog
) -> None:
    run_query(members, subscribed(tp))
    log.commit_group_offsets(members.name, {tp: NEWER})
    operator, keys = Operator(members.client, log, members.name), members.keys
    with pytest.raises(StateFormatError, match=REFUSAL):
        operator.reset(operator.plan_reset(None, ToOffset(0)))
    with pytest.raises(StateFormatError, match=REFUSAL):
        operator.delete()
    assert (members.keys, members.state.stable) == (keys, {tp: 5})
    assert log.group_offsets(members.name) == {tp: NEWER}
