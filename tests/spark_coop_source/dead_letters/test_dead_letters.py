"""A task's dead letters: the record as it was and eight headers, in Kafka before the task ends, each key in order."""

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from coordinator.errors import RecordRefusedError, UnknownTopicError
from coordinator.values.dead_letter import DeadLetter, SourceRecord
from coordinator.values.subscription import TopicPartition
from failed_rows import T0, row, send
from spark_coop_source.dead_letters import producers
from spark_coop_source.dead_letters.dead_letters import DeadLetters
from topics import Kafka, Record
from written_records import consumed

pytestmark = pytest.mark.usefixtures("closed_clients")


def settings(kafka: Kafka) -> dict[str, object]:
    return {"bootstrap_servers": kafka.bootstrap, "client_id": "billing", "isolation_level": "read_committed"}


def letter_of(record: Any) -> DeadLetter:
    found = DeadLetter.parse(record.key, record.value, record.headers)
    assert found is not None
    return found


ROWS = {
    "key, value and headers": row(headers=[{"key": "h", "value": b"1"}, {"key": "null", "value": None}]),
    "no key": row(key=None),
    "a tombstone": row(value=None),
    "neither key nor value": row(key=None, value=None),
    "no time": row(timestamp=None),
    "a header that another dead letter left": row(headers=[{"key": "coop.topic", "value": b"older"}]),
}


@pytest.mark.parametrize("failed", ROWS.values(), ids=ROWS)
def test_a_dead_letter_holds_the_record_as_it_was_and_why_it_failed(kafka: Kafka, failed: pa.RecordBatch) -> None:
    topic = kafka.create_topic("orders-dead", 3)
    with DeadLetters(topic, settings(kafka), "to-lake") as letters:
        letters.send(failed, "ValueError", "no such customer", 5)

    (written,) = consumed(kafka.bootstrap, topic)
    letter, (was,) = letter_of(written), failed.to_pylist()
    headers = tuple((header["key"], header["value"]) for header in was["headers"] or ())
    time_ms = -1 if was["timestamp"] is None else T0
    record = SourceRecord(TopicPartition("orders", 3), 17, time_ms, was["key"], was["value"], headers)
    assert letter == DeadLetter(record, "to-lake", "ValueError", "no such customer", 5)
    assert written.timestamp > T0, "its retention begins when it is written"


def test_records_of_a_key_are_in_one_partition_and_in_order_where_kafka_puts_the_key(kafka: Kafka) -> None:
    topic = kafka.create_topic("orders-dead", 5)
    keys = [b"%d" % (number % 7) for number in range(70)]
    with DeadLetters(topic, settings(kafka), "g") as letters:
        for offset, key in enumerate(keys):
            letters.send(row(offset, key=key), "E", "", 1)
    assert letters.sent == 70
    usual = kafka.create_topic("usual", 5)
    kafka.produce(usual, [Record(b"v", key) for key in keys])

    found = consumed(kafka.bootstrap, topic)
    assert {(r.key, r.partition) for r in found} == {(r.key, r.partition) for r in consumed(kafka.bootstrap, usual)}
    for key in set(keys):
        offsets = [letter_of(r).record.offset for r in found if r.key == key]
        assert offsets == [offset for offset, k in enumerate(keys) if k == key]


def test_records_without_a_key_stay_in_order_too(kafka: Kafka) -> None:
    topic = kafka.create_topic("orders-dead", 2)
    with DeadLetters(topic, settings(kafka), "g") as letters:
        for offset in range(20):
            letters.send(row(offset, key=None, partition=5), "E", "", 1)
    found = consumed(kafka.bootstrap, topic)
    assert {record.partition for record in found} == {1}
    assert [letter_of(record).record.offset for record in found] == [*range(20)]


def test_a_task_without_dead_letters_opens_no_connection() -> None:
    threads = threading.active_count()
    with DeadLetters("dead", {"bootstrap_servers": "127.0.0.1:1"}, "g") as letters:
        letters.flush()
        assert threading.active_count() == threads


def test_the_next_task_has_the_same_producer(kafka: Kafka) -> None:
    topic = kafka.create_topic("orders-dead")
    first = send(topic, settings(kafka), row(0))
    assert send(topic, settings(kafka), row(1)) is first
    assert send(topic, settings(kafka) | {"client_id": "other"}, row(2)) is not first
    assert [letter_of(record).record.offset for record in consumed(kafka.bootstrap, topic)] == [0, 1, 2]


def test_after_an_error_of_the_task_its_producer_is_closed(kafka: Kafka) -> None:
    topic = kafka.create_topic("orders-dead")
    threads = threading.active_count()
    letters = DeadLetters(topic, settings(kafka), "g").__enter__()
    letters.send(row(2), "E", "", 1)
    error = RuntimeError("whatever went wrong in the task")
    letters.__exit__(type(error), error, None)
    assert threading.active_count() == threads
    assert producers._idle.clients == ()


def test_a_task_that_ends_early_leaves_its_dead_letters_in_kafka(kafka: Kafka) -> None:
    topic = kafka.create_topic("orders-dead")

    def task() -> Iterator[int]:
        with DeadLetters(topic, settings(kafka), "g") as letters:
            letters.send(row(1), "E", "", 1)
            yield 1

    rows = task()
    next(rows)
    rows.close()  # type: ignore[attr-defined]  # as under a LIMIT
    assert len(consumed(kafka.bootstrap, topic)) == 1


def test_a_record_that_is_too_large_for_the_topic_is_named(kafka: Kafka) -> None:
    topic = kafka.create_topic("orders-dead", config={"max.message.bytes": "1000"})
    threads = threading.active_count()
    with pytest.raises(RecordRefusedError) as error:
        send(topic, settings(kafka), row(3), row(4, value=b"x" * 2_000))
    assert "takes no record of this size, asked for a write of the dead letter of orders-3 offset 4" in error.value.what
    assert "max.message.bytes" in error.value.remedy
    assert "xxxx" not in str(error.value)
    assert len(consumed(kafka.bootstrap, topic)) == 1, "the other one is written"
    assert threading.active_count() <= threads


def test_a_topic_that_was_deleted_meanwhile_is_named(kafka: Kafka) -> None:
    with pytest.raises(UnknownTopicError, match="no topic 'orders-daed'"):
        send("orders-daed", settings(kafka), row())
