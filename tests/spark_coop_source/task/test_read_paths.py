"""Raw record batches hold the same records as the answers of kafka-python's `poll` and of librdkafka."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import confluent_kafka
import pytest
from kafka import TopicPartition

from coordinator.values.key_hash import cuts
from log_fixtures import compacted_log, emptied_marker_log, end, eventually, lane, odd_log, rows, task, whole
from spark_coop_source.fetch import consumers, raw_batches
from spark_coop_source.task.partition import SlicePartition
from topics import Kafka, Record

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
ISOLATION = ("read_committed", "read_uncommitted")


@contextmanager
def without_the_hook() -> Iterator[None]:
    """Consumers that are opened meanwhile return single records."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(raw_batches, "fits", lambda _: False)
        consumers.close_idle()
        yield
        consumers.close_idle()


def by_poll(partition: SlicePartition) -> list[dict[str, object]]:
    with without_the_hook():
        return rows(partition)


@pytest.fixture(scope="module", params=CODECS)
def log(request: pytest.FixtureRequest, kafka: Kafka) -> Iterator[str]:
    yield odd_log(kafka, request.param)
    consumers.close_idle()


def codecs(kafka: Kafka, topic: str) -> set[int]:
    """The codecs of the batches in a log, as the broker has them."""
    at = TopicPartition(topic, 0)
    found: set[int] = set()
    with consumers.borrowed({"bootstrap_servers": kafka.bootstrap}, [at]) as consumer:
        consumer.seek(at, 0)
        last = end(kafka, topic)
        while consumer.position(at) < last:
            found |= {record.value.codec for records in consumer.poll(100).values() for record in records}
    return found


def test_the_odd_logs_hold_every_codec(kafka: Kafka, log: str) -> None:
    assert codecs(kafka, log) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("level", ISOLATION)
def test_odd_logs_of_every_codec_are_read_as_poll_reads_them(kafka: Kafka, log: str, level: str) -> None:
    last = end(kafka, log)
    everything = task(kafka, [whole(log, 0, last)], include_headers=True, isolation_level=level)
    read = rows(everything)
    assert read == by_poll(everything)
    assert len(read) > 70
    for start in range(0, 50, 7):
        some = task(kafka, [whole(log, start, start + 9)], isolation_level=level)
        assert [row["offset"] for row in rows(some)] == [
            row["offset"] for row in read if start <= int(str(row["offset"])) < start + 9
        ]
    lanes = [task(kafka, [lane(log, hashes, 3, last - 1)], isolation_level=level) for hashes in cuts(3)]
    for each in lanes:
        assert rows(each) == by_poll(each)


def test_a_compacted_log_is_read_as_poll_reads_it(kafka: Kafka) -> None:
    topic = compacted_log(kafka)
    last = end(kafka, topic)
    for start in (0, last // 2, last - 3):
        some = task(kafka, [whole(topic, start, last)], include_headers=True)
        assert rows(some) == by_poll(some)


def test_a_marker_that_the_cleaner_has_emptied_stops_no_reader(kafka: Kafka) -> None:
    topic = emptied_marker_log(kafka)
    last = end(kafka, topic)
    for level in ISOLATION:
        some = task(kafka, [whole(topic, 0, last)], isolation_level=level)
        assert rows(some)[-1]["offset"] == last - 1
        eventually(partial(_same, some))


def _same(some: SlicePartition) -> bool:
    """Whether both ways read the same; the cleaner may come in between."""
    return rows(some) == by_poll(some)


def test_answers_that_end_within_a_batch_are_read_as_poll_reads_them(kafka: Kafka, log: str) -> None:
    offsets = whole(log, 0, end(kafka, log))
    some = task(kafka, [offsets], include_headers=True, max_partition_fetch_bytes=700, max_poll_records=11)
    assert rows(some) == by_poll(some)


def by_librdkafka(kafka: Kafka, topic: str, level: str) -> list[dict[str, object]]:
    settings = {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": "none",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": level,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    read: list[dict[str, object]] = []
    message = consumer.poll(30)
    while message is not None and message.error() is None:
        read.append(
            {
                "key": message.key(),
                "value": message.value(),
                "offset": message.offset(),
                "timestamp": message.timestamp()[1],
                "timestampType": message.timestamp()[0] - confluent_kafka.TIMESTAMP_CREATE_TIME,
                "headers": [{"key": header[0], "value": header[1]} for header in message.headers() or []] or None,
            }
        )
        message = consumer.poll(30)
    assert message is not None, "librdkafka waited in vain"
    assert message.error() == confluent_kafka.KafkaError._PARTITION_EOF
    consumer.close()
    return read


@pytest.mark.parametrize("level", ISOLATION)
def test_odd_logs_are_read_as_librdkafka_reads_them(kafka: Kafka, log: str, level: str) -> None:
    everything = task(kafka, [whole(log, 0, end(kafka, log))], include_headers=True, isolation_level=level)
    ours = [
        {name: value for name, value in row.items() if name not in ("topic", "partition")}
        | {"timestamp": round(row["timestamp"].timestamp() * 1000)}  # type: ignore[attr-defined]
        for row in rows(everything)
    ]
    assert ours == by_librdkafka(kafka, log, level)


@pytest.mark.parametrize(("number", "codec"), list(enumerate(["gzip", "snappy", "lz4", "zstd"], 1)))
def test_records_that_librdkafka_compressed_are_read(kafka: Kafka, number: int, codec: str) -> None:
    topic = kafka.create_topic()
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "compression.type": codec})
    values = [b"%d " % i * 200 for i in range(500)]
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    assert codecs(kafka, topic) == {number}
    assert [row["value"] for row in rows(task(kafka, [whole(topic, 0, 500)]))] == values


def test_times_of_append_are_read_as_poll_reads_them(kafka: Kafka) -> None:
    topic = kafka.create_topic(config={"message.timestamp.type": "LogAppendTime"})
    kafka.produce(topic, [Record(b"v", b"k", timestamp_ms=i) for i in range(50)], compression="lz4")
    some = task(kafka, [whole(topic, 0, 50)])
    assert rows(some) == by_poll(some)
