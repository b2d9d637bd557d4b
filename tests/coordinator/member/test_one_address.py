"""A failover behind one address: the kept connections lead to a server that is a replica now (rule: redis-outage)."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis

from coordinator.assignment.settings import GroupSettings
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.subscription import TopicPartition
from group_services import Group, batch, batches, beating, records, subscribed
from one_address import OneAddress, one_address
from own_valkey import OwnValkey
from streams import eventually, keyed
from topics import Kafka

pytestmark = pytest.mark.long
SECONDS = 5
"""A failover holds up a member for less."""


@pytest.fixture
def replica(valkey: OwnValkey, tmp_path: Path) -> Iterator[OwnValkey]:
    """A copy of `valkey` that follows it."""
    server = OwnValkey(tmp_path / "replica")
    follow(server, valkey)
    yield server
    server.stop()


@pytest.fixture
def address(valkey: OwnValkey) -> Iterator[OneAddress]:
    with one_address(valkey.port) as made:
        yield made


def follow(server: OwnValkey, primary: OwnValkey | None) -> None:
    """Make a server a copy of another one, or a primary."""
    with closing(redis.Redis.from_url(server.address)) as client:
        client.replicaof(*(("127.0.0.1", str(primary.port)) if primary else ("NO", "ONE")))
        if primary:
            eventually(lambda: client.info("replication")["master_link_status"] == "up", "the copy follows", 20)


@pytest.mark.parametrize("stale", ["yes", "no"], ids=["READONLY", "MASTERDOWN"])
def test_a_member_goes_on_at_the_new_primary_within_seconds(
    kafka: Kafka, valkey: OwnValkey, replica: OwnValkey, address: OneAddress, tp: TopicPartition, group: str, stale: str
) -> None:
    """The old primary goes on to run: as a copy of the new one, or as a copy that has lost its primary."""
    with closing(Group(kafka, address.url, group)) as members:
        settings = GroupSettings(group, capacity=2, session_ms=3_000, max_outage_ms=10_000)
        service = members.started(subscribed(tp), settings=settings)
        with beating(service):
            done = batch(service, StreamOffset(group))
            kafka.produce(tp.topic, keyed(3))
            with closing(redis.Redis.from_url(valkey.address)) as client:
                client.set("last", "write")
                assert client.wait(1, 20_000) == 1, "the copy has all"
            follow(replica, None)
            connected, address.target = address.connections, replica.port
            if stale == "yes":
                follow(valkey, replica)
            else:
                valkey.configure(replica_serve_stale_data="no")
                with closing(redis.Redis.from_url(valkey.address)) as client:
                    client.replicaof("127.0.0.1", "1")
            began = time.monotonic()
            rest = list(batches(service, done))
            took_s = time.monotonic() - began
        assert records(*rest) == {(tp.topic, offset) for offset in (5, 6, 7)}, "and nothing is read twice"
        assert members.state.stable == {tp: 8}
    assert address.connections > connected
    assert took_s < SECONDS
