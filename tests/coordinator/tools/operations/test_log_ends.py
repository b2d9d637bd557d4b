"""Log ends of Kafka in a group's state: lag without members, and the age of ends without Kafka."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from coordinator.errors import KafkaUnavailableError
from coordinator.kafka.log import KafkaLog
from coordinator.tools.operations.log_ends import age_s, log_ends, with_ends
from coordinator.tools.operations.views import oldest_end_s, total_lag, view
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition
from group_states import group_state
from streams import eventually, keyed
from three_brokers import ThreeBrokers
from topics import Kafka, Record

TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
STATE = replace(group_state(((WHOLE, 5),)), now_ms=70_000, ends={TP: 30, OTHER: 3}, ends_ms={"orders": 10_000})


def test_ends_of_kafka_replace_those_that_a_member_saw() -> None:
    seen = with_ends(STATE, {TP: 1_030, TopicPartition("others", 0): 9})
    assert (seen.ends, seen.ends_ms) == ({TP: 1_030}, {"orders": 70_000})
    first, second = view("g", seen).partitions
    assert (first.end, first.lag, first.end_age_s) == (1_030, 1_025, 0)
    assert (second.end, second.lag, second.end_age_s) == (None, None, None), "Kafka does not have it"


def test_the_age_of_an_end_is_the_time_since_the_look() -> None:
    assert age_s(STATE, TP) == 60
    assert age_s(replace(STATE, ends_ms={}), TP) is None, "written by an older member"
    assert age_s(replace(STATE, ends_ms={"orders": 70_001}), TP) == 0, "the clock of Redis was set back"


def test_lag_and_age_of_a_group_are_those_of_partitions_with_a_known_end() -> None:
    known = view("g", replace(STATE, ends={TP: 30})).partitions
    assert (total_lag(known), oldest_end_s(known)) == (25, 60)
    unknown = view("g", replace(STATE, ends={})).partitions
    assert (total_lag(unknown), oldest_end_s(unknown)) == (None, None)


@pytest.fixture
def log(kafka: Kafka) -> Iterator[KafkaLog]:
    with closing(KafkaLog({"bootstrap_servers": kafka.bootstrap}, retries=0, retry_interval_ms=0)) as opened:
        yield opened


@pytest.mark.server
def test_kafka_names_the_ends_of_the_partitions_that_it_has(kafka: Kafka, log: KafkaLog) -> None:
    topic = kafka.create_topic("dotted.name", partitions=1)
    kafka.produce(topic, keyed(5))
    gone, grown = TopicPartition(f"{topic}-gone", 0), TopicPartition(topic, 7)
    assert log_ends(log, [TopicPartition(topic, 0), gone, grown]) == {TopicPartition(topic, 0): 5}
    assert log_ends(log, [gone]) == {}
    assert log_ends(log, []) == {}


@pytest.mark.server
def test_a_broker_is_dead__the_ends_of_the_other_partitions(three_brokers: ThreeBrokers) -> None:
    topic = three_brokers.topic_without_copies()
    three_brokers.kafka.produce(topic, [Record(b"v", b"k", partition) for partition in range(3)])
    tps = [TopicPartition(topic, partition) for partition in range(3)]
    arguments = {"bootstrap_servers": three_brokers.brokers.bootstrap}
    with closing(KafkaLog(arguments, retries=0, retry_interval_ms=0, patience_ms=0)) as log:
        with three_brokers.killed(2):
            eventually(lambda: log_ends(log, tps) == {tps[0]: 1, tps[2]: 1}, "the ends of the living")
            with pytest.raises(KafkaUnavailableError):
                log_ends(log, [tps[1]])
        eventually(lambda: log_ends(log, tps) == dict.fromkeys(tps, 1), "all ends")
