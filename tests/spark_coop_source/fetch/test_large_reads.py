"""The hook into kafka-python's sockets: it reads large pieces, and changes nothing else."""

import logging
import socket

import pytest
from kafka import KafkaConsumer, TopicPartition

from spark_coop_source.fetch import consumers, large_reads
from spark_coop_source.fetch.large_reads import READ_BYTES, LargeReads
from topics import Kafka, Record


def test_the_hook_fits_the_kafka_python_that_is_installed(kafka: Kafka) -> None:
    """If this fails, reading still works, but fetching takes twice the CPU: see what changed in its transport."""
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(b"v")])
    at = TopicPartition(topic, 0)
    consumers.close_idle()
    with consumers.borrowed({"bootstrap_servers": kafka.bootstrap}, [at]) as consumer:
        consumer.seek(at, 0)
        assert consumer.poll(30_000)
        connections = consumer._manager._conns.values()
        assert any(isinstance(each.transport._sock, LargeReads) for each in connections if each.transport)


def test_received_bytes_are_returned_at_once_and_then_nothing_until_the_next_look() -> None:
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        reading = LargeReads(here)
        there.sendall(bytes(20_000))
        assert len(reading.recv(4096)) == 20_000
        with pytest.raises(BlockingIOError):
            reading.recv(4096)
        there.sendall(b"more")
        assert reading.recv(4096) == b"more"
        assert reading.fileno() == here.fileno()


def test_the_end_of_a_connection_is_seen_at_the_next_look() -> None:
    here, there = socket.socketpair()
    with here:
        here.setblocking(False)
        reading = LargeReads(here)
        there.sendall(b"last")
        there.close()
        assert reading.recv(READ_BYTES) == b"last"
        with pytest.raises(BlockingIOError):
            reading.recv(READ_BYTES)
        assert reading.recv(READ_BYTES) == reading.recv(READ_BYTES) == b""


def test_a_kafka_python_of_another_shape_is_left_alone(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap)
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, "spark_coop_source.fetch.large_reads"):
        patched.delattr(type(consumer._manager), "_build_transport")
        assert not large_reads.install(consumer)
    assert "fetching is slower" in caplog.text
    consumer.close()
