"""Redis answers, and has its data not yet, or not its hash slots: a member waits (rule: redis-outage)."""

import logging
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis

import servers
from coordinator.assignment.settings import GroupSettings
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.subscription import TopicPartition
from group_services import Group, batch, batches, beating, records, subscribed
from log_lines import own_lines
from own_valkey import OwnValkey
from streams import eventually, keyed
from topics import Kafka

pytestmark = pytest.mark.long
SLOWLY = ("--key-load-delay", "50000", "--loading-process-events-interval-bytes", "1024")
FILLERS = {f"filler-{n}": os.urandom(1024) for n in range(200)}
"""Of 1 KB that cannot be compressed. So much is loaded between two answers, and takes 50 ms: ten seconds in all."""


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[OwnValkey]:
    (bus,) = servers.free_ports(1)  # else it is the own port and 10,000, which may be too high
    made = OwnValkey(tmp_path, (*request.param, "--cluster-port", str(bus)))
    yield made
    made.stop()


def begun(members: Group, tp: TopicPartition) -> tuple[Service, StreamOffset]:
    """A member that waits for Redis for a minute, and the end of its first batch."""
    settings = GroupSettings(members.name, capacity=2, session_ms=30_000, max_outage_ms=60_000)
    service = members.started(subscribed(tp), settings=settings)
    return service, batch(service, StreamOffset(members.name))


@pytest.mark.parametrize("server", [SLOWLY], indirect=True, ids=["LOADING"])
def test_a_restarted_server_loads_its_data__the_member_goes_on_once_it_is_there(
    kafka: Kafka, server: OwnValkey, tp: TopicPartition, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="coordinator")
    with closing(Group(kafka, server.address, group)) as members, ThreadPoolExecutor(1) as threads:
        service, done = begun(members, tp)
        members.redis.mset(FILLERS)
        members.redis.bgrewriteaof()
        eventually(lambda: not members.redis.info("persistence")["aof_rewrite_in_progress"], "all is in one file")
        kafka.produce(tp.topic, keyed(3))
        restarted = threads.submit(server.restart)
        eventually(lambda: loads(server), "it loads")
        with beating(service):
            rest = list(batches(service, done))
        restarted.result()
    assert records(*rest) == {(tp.topic, offset) for offset in (5, 6, 7)}
    assert any("has started, and still loads its data" in line for line in own_lines(caplog))


def loads(server: OwnValkey) -> bool:
    try:
        with closing(redis.Redis.from_url(server.address)) as client:
            client.ping()
    except redis.BusyLoadingError:
        return True
    except redis.ConnectionError:
        return False
    return False


@pytest.mark.parametrize("server", [("--cluster-enabled", "yes")], indirect=True, ids=["CLUSTERDOWN"])
def test_a_cluster_has_no_node_for_our_slot__the_member_goes_on_once_it_has(
    kafka: Kafka, server: OwnValkey, tp: TopicPartition, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="coordinator")
    slots(server, "ADDSLOTSRANGE")
    with closing(Group(kafka, server.address, group)) as members, ThreadPoolExecutor(1) as threads:
        service, done = begun(members, tp)
        kafka.produce(tp.topic, keyed(3))
        slots(server, "DELSLOTSRANGE")
        rest = threads.submit(lambda: list(batches(service, done)))
        eventually(lambda: any("CLUSTERDOWN" in line for line in own_lines(caplog)), "it says so")
        slots(server, "ADDSLOTSRANGE")
        assert records(*rest.result()) == {(tp.topic, offset) for offset in (5, 6, 7)}


def slots(server: OwnValkey, change: str) -> None:
    """Give the node all hash slots, or take them away."""
    wanted = "ok" if change == "ADDSLOTSRANGE" else "fail"
    node: Any = redis.Redis.from_url(server.address)
    with closing(node):
        node.execute_command("CLUSTER", change, "0", "16383")
        eventually(lambda: node.cluster("INFO")["cluster_state"] == wanted, f"the state of the cluster is {wanted}")
