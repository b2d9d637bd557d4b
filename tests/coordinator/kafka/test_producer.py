"""Records are written as they were, to a real broker; a record that Kafka refuses is a named error."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing

import pytest

from coordinator.errors import KafkaUnavailableError, RecordRefusedError, UnknownTopicError
from coordinator.kafka import producer as module
from coordinator.kafka.producer import Outgoing, RecordProducer
from coordinator.values.subscription import TopicPartition
from topics import Kafka
from written_records import consumed


@pytest.fixture
def producer(kafka: Kafka) -> Iterator[RecordProducer]:
    """A producer at the test's broker, for any topic."""
    with closing(RecordProducer({"bootstrap_servers": kafka.bootstrap}, ())) as made:
        yield made


def outgoing(topic: str, value: bytes | None, number: int = 0, key: bytes | None = b"k") -> Outgoing:
    return Outgoing(TopicPartition(topic, 0), key, value, (), None, f"record {number}")


ODD: Mapping[str, Outgoing] = {
    "a null key": Outgoing(TopicPartition("t", 0), None, b"v", (), 5, ""),
    "a tombstone": Outgoing(TopicPartition("t", 1), b"k", None, (), 5, ""),
    "neither key nor value": Outgoing(TopicPartition("t", 0), None, None, (), 5, ""),
    "an empty key and an empty value": Outgoing(TopicPartition("t", 1), b"", b"", (), 5, ""),
    "a header twice, a null one, an empty one": Outgoing(
        TopicPartition("t", 0), b"k", b"v", (("h", b"1"), ("h", b"2"), ("null", None), ("", b"")), 5, ""
    ),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_record_arrives_as_it_was(kafka: Kafka, producer: RecordProducer, odd: Outgoing) -> None:
    topic = kafka.create_topic("odd", 2)
    to = TopicPartition(topic, odd.to.partition)

    producer.send(Outgoing(to, odd.key, odd.value, odd.headers, odd.timestamp_ms, ""))
    producer.flush()

    (found,) = consumed(kafka.bootstrap, topic)
    assert (found.partition, found.key, found.value, tuple(found.headers), found.timestamp) == (
        *to[1:],
        odd.key,
        odd.value,
        odd.headers,
        5,
    )


def test_records_of_a_partition_stay_in_order_and_a_second_flush_has_nothing_to_do(
    kafka: Kafka, producer: RecordProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_UNSENT", 10_000)  # it flushes on the way
    topic = kafka.create_topic("many")
    for number in range(1_000):
        producer.send(outgoing(topic, b"%d" % number))
    assert producer._unsent_bytes <= 10_000, "what waits is bounded"
    producer.flush()
    producer.flush()

    assert [int(record.value) for record in consumed(kafka.bootstrap, topic)] == [*range(1_000)]


def test_a_record_that_is_too_large_is_named_and_the_others_are_written(kafka: Kafka) -> None:
    topic = kafka.create_topic("small", config={"max.message.bytes": "2000"})
    with closing(RecordProducer({"bootstrap_servers": kafka.bootstrap}, [topic])) as producer:
        for number, size in enumerate((10, 10, 3_000, 10)):
            producer.send(outgoing(topic, b"x" * size, number))
        with pytest.raises(RecordRefusedError) as error:
            producer.flush()

    assert f"no record of this size, asked for a write of record 2 (3001 bytes) to topic '{topic}'" in error.value.what
    assert "max.message.bytes of the topic" in error.value.remedy


def test_a_batch_that_is_too_large_though_its_records_are_not_is_written_whole(
    kafka: Kafka, producer: RecordProducer
) -> None:
    """kafka-python splits it, and its own `flush` may wait for the unsplit batch for ever."""
    topic = kafka.create_topic("small", config={"max.message.bytes": "700"})
    for number in range(40):
        producer.send(outgoing(topic, b"%300d" % number, number))
    producer.flush()

    assert [int(record.value) for record in consumed(kafka.bootstrap, topic)] == [*range(40)]


def test_a_record_without_a_key_in_a_compacted_topic_is_named(kafka: Kafka, producer: RecordProducer) -> None:
    topic = kafka.create_topic("compacted", config={"cleanup.policy": "compact"})
    producer.send(outgoing(topic, b"v", key=None))
    with pytest.raises(RecordRefusedError, match="does not take this record, asked for a write of record 0") as error:
        producer.flush()
    assert "cleanup.policy=delete" in error.value.remedy


def test_a_topic_that_does_not_exist_is_named_at_once(kafka: Kafka) -> None:
    threads = threading.active_count()
    with pytest.raises(UnknownTopicError, match="no topic 'nowhere'"):
        RecordProducer({"bootstrap_servers": kafka.bootstrap}, ["nowhere"])
    assert threading.active_count() == threads


@pytest.mark.usefixtures("impatient")
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_nobody_listens__a_named_error_and_no_thread() -> None:
    threads = threading.active_count()
    with pytest.raises(KafkaUnavailableError, match=r"127\.0\.0\.1:1"):
        RecordProducer({"bootstrap_servers": "127.0.0.1:1", "bootstrap_timeout_ms": 300}, ["t"])
    assert threading.active_count() == threads


def test_close_does_not_wait_for_records_that_were_not_flushed_and_leaves_no_thread(kafka: Kafka) -> None:
    threads, topic = threading.active_count(), kafka.create_topic()
    producer = RecordProducer({"bootstrap_servers": kafka.bootstrap}, [topic])
    producer.send(outgoing(topic, b"v"))
    producer.close()
    producer.close()
    assert threading.active_count() <= threads


def test_settings_of_a_consumer_serve_a_producer(kafka: Kafka) -> None:
    consumers = {
        "bootstrap_servers": [kafka.bootstrap],
        "client_id": "billing",
        "isolation_level": "read_committed",
        "client_rack": "r1",
        "request_timeout_ms": 300_000,  # longer than a delivery may take, which kafka-python refuses
        "max_poll_records": 7,
    }
    topic = kafka.create_topic()
    with closing(RecordProducer(consumers, [topic])) as producer:
        producer.send(outgoing(topic, b"v"))
        producer.flush()
        assert producer.kafka.config["client_id"] == "billing"
    assert len(consumed(kafka.bootstrap, topic)) == 1
