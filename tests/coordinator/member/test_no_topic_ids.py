"""A broker that names no topic ids, as a client of its age sees a real one: the protocol of Kafka 2.7 and of 2.1."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from coordinator.errors import DataLossError
from coordinator.kafka.log import KafkaLog
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.offset_spec import Latest
from coordinator.values.subscription import TopicPartition
from group_services import Group, batches, read, records, subscribed
from kafka_logs import kafka_log
from streams import keyed

pytestmark = pytest.mark.usefixtures("short_sessions")


@pytest.fixture(params=[(2, 7), (2, 1)], ids=["2.7", "2.1"])
def old_log(members: Group, request: pytest.FixtureRequest) -> Iterator[KafkaLog]:
    with closing(kafka_log(members.kafka.bootstrap, {"api_version": request.param})) as log:
        yield log


def to_its_end(service: Service, start: StreamOffset) -> StreamOffset:
    service.set_targets()
    done = [start, *batches(service, start)]
    service.leave()
    return done[-1]


def test_a_group_reads_restarts_and_recovers(members: Group, tp: TopicPartition, old_log: KafkaLog) -> None:
    service = members.started(subscribed(tp), log=old_log)
    end = to_its_end(service, StreamOffset(members.name))
    assert records(end) == read(tp, 0, 5)

    members.kafka.produce(tp.topic, keyed(3))
    end = to_its_end(members.service(subscribed(tp), log=old_log), StreamOffset.from_json(end.to_json()))
    assert records(end) == read(tp, 5, 8), "the same checkpoint"

    members.kafka.produce(tp.topic, keyed(2))
    members.lose_everything()
    service = members.started(subscribed(tp), Latest(), log=old_log)
    end = to_its_end(service, StreamOffset(members.name))
    assert records(end) == read(tp, 8, 10), "Redis lost, a new checkpoint: the mirror proves the position"


def test_the_start_says_what_cannot_be_detected(
    members: Group, tp: TopicPartition, old_log: KafkaLog, caplog: pytest.LogCaptureFixture
) -> None:
    service = members.started(subscribed(tp), log=old_log)
    to_its_end(service, StreamOffset(members.name))
    (line,) = [r.message for r in caplog.records if "topic ids" in r.message]
    assert f"{tp.topic} are deleted and created again" in line


def test_brokers_that_name_ids_from_now_on_are_an_error_by_name(members: Group, tp: TopicPartition) -> None:
    """Nobody knows whether the topic is the same: after an upgrade of the brokers, an operator says so."""
    with closing(kafka_log(members.kafka.bootstrap, {"api_version": (2, 7)})) as old:
        service = members.started(subscribed(tp), log=old)
        end = to_its_end(service, StreamOffset(members.name))
    members.kafka.produce(tp.topic, keyed(3))
    with pytest.raises(DataLossError, match="had no topic id and has one now"):
        to_its_end(members.service(subscribed(tp)), end)
