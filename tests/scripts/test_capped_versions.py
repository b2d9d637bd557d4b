"""The proxy before a broker: clients find one without topic ids, and all else works."""

import socket
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import capped_versions
import servers
from capped_versions import MOST, capped
from coordinator.values.subscription import NO_ID, Topic, TopicPartition
from group_services import subscribed
from kafka_logs import kafka_log
from streams import keyed
from topics import Kafka

METADATA, PRODUCE = 3, 0


@pytest.mark.parametrize("version", [0, 2, 3, 4])
@pytest.mark.parametrize("apis", [5, 200])
def test_only_the_highest_versions_with_topic_ids_are_capped(version: int, apis: int) -> None:
    entries = [(key, 0, 17) for key in range(apis)]
    after = [(key, 0, min(17, MOST.get(key, 17))) for key in range(apis)]
    assert capped(_answer(version, entries), version) == _answer(version, after)


def _answer(version: int, entries: list[tuple[int, int, int]]) -> bytes:
    """As a broker writes it: correlation id, error code, the versions, and more behind them."""
    packed = [struct.pack(">hhh", *entry) + bytes(version >= 3) for entry in entries]
    size = len(entries) + 1
    compact = bytes([size]) if size < 0x80 else bytes([size & 0x7F | 0x80, size >> 7])
    count = compact if version >= 3 else struct.pack(">i", len(entries))
    return struct.pack(">ih", 77, 0) + count + b"".join(packed) + b"\0\0\0\7and more"


def test_a_port_that_is_taken_is_an_error() -> None:
    with closing(socket.create_server((servers.HOST, 0))) as taken, pytest.raises(RuntimeError, match="in use"):
        capped_versions.proxy(taken.getsockname()[1], 1).__enter__()


@pytest.fixture
def old_broker(tmp_path: Path) -> Iterator[str]:
    with capped_versions.broker(tmp_path) as address:
        yield address


@pytest.mark.long
@pytest.mark.server
def test_a_client_finds_no_topic_ids_and_reads_what_it_wrote(old_broker: str) -> None:
    kafka = Kafka(old_broker)
    tp = TopicPartition(kafka.create_topic("old"), 0)
    kafka.produce(tp.topic, keyed(3))
    with closing(kafka_log(old_broker)) as log:
        assert log.topics(subscribed(tp)) == {tp.topic: Topic(tp.topic, NO_ID, (0,))}
        assert log.bounds([tp])[tp].end == 3
