"""The times of the first unread records of partitions, from a real log."""

from contextlib import closing

import pytest

from coordinator.kafka.log import KafkaLog
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from kafka_logs import delete_records, kafka_log
from lane_leads import FIRST_MS, MINUTE, minutes
from log_fixtures import emptied_marker_log, end
from three_brokers import ThreeBrokers
from topics import Kafka, Record


@pytest.fixture
def tps(kafka: Kafka) -> tuple[TopicPartition, TopicPartition]:
    return minutes(kafka)


def test_deleted_offsets_and_markers_have_no_time(
    kafka: Kafka, log: KafkaLog, tps: tuple[TopicPartition, TopicPartition]
) -> None:
    one, two = tps
    delete_records(kafka, one, 5)
    with kafka.open_transaction(two.topic, [Record(b"first", b"k", 1)]):
        pass
    found = log.first_times({one: OffsetRange(0, 10), two: OffsetRange(11, 12)})
    assert found == {one: FIRST_MS + 5 * MINUTE, two: None}, "the marker at the end of a transaction is no record"


def test_a_marker_that_the_cleaner_has_emptied_is_passed(kafka: Kafka) -> None:
    topic = emptied_marker_log(kafka)
    tp = TopicPartition(topic, 0)
    with closing(kafka_log(kafka.bootstrap, {"isolation_level": "read_committed"})) as log:
        assert log.first_times({tp: OffsetRange(0, end(kafka, topic))}).keys() == {tp}


def test_a_leader_does_not_answer__the_others_have_their_times(three_brokers: ThreeBrokers) -> None:
    """At once, unless theirs is waited for too, whichever broker a client would ask where the leaders are."""
    topic = three_brokers.topic_without_copies()
    three_brokers.kafka.produce(topic, [Record(b"v", b"k", n, timestamp_ms=FIRST_MS) for n in range(3)])
    living, all_three = ([TopicPartition(topic, n) for n in numbers] for numbers in ((0, 2), (0, 1, 2)))
    expected = dict.fromkeys(living, FIRST_MS)
    with closing(kafka_log(three_brokers.brokers.bootstrap)) as log, three_brokers.frozen(2):
        found = [log.first_times(dict.fromkeys(tps, OffsetRange(0, 1))) for tps in (*[living] * 5, all_three)]
    assert found == [expected] * 6
