"""The hook into kafka-python: whole batches come out, and everything around them is still kafka-python's."""

import logging

import kafka as kafka_python
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import KafkaConsumer
from kafka.consumer.fetcher import Fetcher, IsolationLevel
from kafka.errors import CorruptRecordError
from kafka.record import default_records, legacy_records

from bombs import bomb
from spark_coop_source.decode.record_batch_v2 import RawBatch
from spark_coop_source.fetch import consumers, older_formats, raw_batches
from spark_coop_source.fetch.older_formats import MessageSetTooLargeError
from topics import Kafka, Record
from wire_batches import Written, batch, emptied, plain, polled


def test_the_hook_fits_the_kafka_python_that_is_installed(kafka: Kafka) -> None:
    """If this fails, reading still works, several times slower: see what changed in kafka-python's fetcher."""
    assert raw_batches.fits(Fetcher.PartitionRecords), kafka_python.__version__
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(b"v")] * 3)
    at = kafka_python.TopicPartition(topic, 0)
    with consumers.borrowed({"bootstrap_servers": kafka.bootstrap, "fetch_max_wait_ms": 10_000}, [at]) as consumer:
        consumer.seek(at, 0)
        values = [record.value for record in consumer.poll(30_000)[at]]
        assert consumer.position(at) == 3
    assert all(isinstance(value, RawBatch) for value in values)
    assert sum(value.count for value in values) == 3


class AnotherShape:
    """A replacement of `PartitionRecords` that a later kafka-python might have."""

    def __init__(self, response: object) -> None:
        self.response = response


@pytest.fixture
def _codecs_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (default_records, legacy_records):
        for name in ("gzip_decode", "snappy_decode", "lz4_decode", "zstd_decode"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, getattr(module, name))


@pytest.mark.usefixtures("_codecs_as_before")
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_the_output_of_kafka_pythons_own_decompression_is_bounded(codec: str) -> None:
    older_formats.bound_codecs()
    wire = batch([Written(b"k", b"v%d" % i) for i in range(50)], codec=codec)
    assert [value for *_, value, _ in plain(wire)] == [b"v%d" % i for i in range(50)]
    with pytest.raises(CorruptRecordError, match="more than 33554432 bytes"):
        plain(bomb(codec, 40, 900_000))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_set_that_is_too_large_is_met_before_anything_is_made_of_it(magic: int) -> None:
    small = batch([Written(b"k", b"v")] * 3, magic=magic, codec="gzip")
    large = batch([Written(b"k", bytes(900_000))] * 40, 3, magic=magic, codec="gzip")
    assert [record.offset for record in polled(small, raw=True)] == [0, 1, 2]
    with pytest.raises(MessageSetTooLargeError) as met:
        polled(large, raw=True)
    assert met.value.last_offset == 42


@pytest.mark.usefixtures("_codecs_as_before")
def test_a_kafka_python_of_another_shape_is_left_alone(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert not raw_batches.fits(AnotherShape)
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap)
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, "spark_coop_source.fetch.raw_batches"):
        patched.setattr(Fetcher, "PartitionRecords", AnotherShape)
        assert not raw_batches.install(consumer)
    assert "PartitionRecords" not in vars(consumer._fetcher)
    assert "does not hand out record batches" in caplog.text
    consumer.close()


@pytest.mark.parametrize("magic", [0, 1])
def test_older_message_formats_come_record_by_record(magic: int) -> None:
    wire = batch([Written(b"k", b"v%d" % i, 1000) for i in range(5)], magic=magic)
    records = polled(wire, raw=True)
    assert records == polled(wire, raw=False)
    assert [record.value for record in records] == [b"v0", b"v1", b"v2", b"v3", b"v4"]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(0, 30))
def test_batches_come_from_the_one_that_holds_the_wanted_offset(sizes: list[int], wanted: int) -> None:
    wire, first = b"", 0
    for size in sizes:
        wire += batch([Written(None, b"v")] * size, first)
        first += size + 2
    batches = [record.value for record in polled(wire, raw=True, fetch_offset=wanted)]
    offsets = [batch.base_offset + i for batch in batches for i in range(batch.count)]
    assert [offset for offset in offsets if offset >= wanted] == [row[0] for row in plain(wire, wanted)]
    assert len([offset for offset in offsets if offset < wanted]) < 4, "only of the batch that it lies in"


def test_a_damaged_batch_is_refused_unless_crcs_are_not_checked() -> None:
    damaged = bytearray(batch([Written(b"k", b"value")]))
    damaged[-3] ^= 1
    wire = bytes(damaged)
    with pytest.raises(CorruptRecordError, match="failed crc check"):
        polled(wire, raw=True)
    (record,) = polled(wire, raw=True, check_crcs=False)
    assert record.value.count == 1


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("marker", [True, False])
@pytest.mark.parametrize("level", [IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED])
def test_batches_that_the_cleaner_has_emptied_are_passed(level: IsolationLevel, marker: bool, raw: bool) -> None:
    wire = batch([Written(b"k", b"v")] * 3) + emptied(3, marker=marker) + batch([Written(b"k", b"v")] * 2, 4)
    read = polled(wire, raw=raw, isolation_level=level)
    assert [record.offset for record in read] == ([2, 5] if raw else [0, 1, 2, 4, 5]), "a raw batch has its last one"
