"""Members of a group with `rack-aware` own the partitions that brokers of their racks lead. Two real brokers."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

import servers
from coordinator.assignment.assignors.rack_aware import RackAware
from coordinator.assignment.settings import GroupSettings
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import TopicPartition, Topics
from group_services import UNLIMITED, Group
from streams import eventually
from topics import Kafka

pytestmark = [pytest.mark.server, pytest.mark.long]  # two brokers of its own
LED_BY = [1, 2, 2, 1, 2, 1]
RACKS = {1: "a", 2: "b"}


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Kafka]:
    """Broker 1 in rack a, which is the controller too, and broker 2 in rack b."""
    folders = {number: tmp_path / str(number) for number in RACKS}
    for folder in folders.values():
        folder.mkdir()
    first = servers.start_broker(folders[1], more=["broker.rack=a"])
    properties = (folders[1] / "broker.properties").read_text().splitlines()
    voters = next(line for line in properties if line.startswith("controller.quorum.voters="))
    alone = ["process.roles=broker", "node.id=2", "listeners=PLAIN://127.0.0.1:${port}", "broker.rack=b"]
    try:
        second = servers.start_broker(folders[2], more=[*alone, voters])
        yield Kafka(first.address)
        second.stop()
    finally:
        first.stop()


def led_by(kafka: Kafka, *numbers: int) -> str:
    """A topic with one replica of each partition, on these brokers."""
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap)) as admin:
        where = {p: [number] for p, number in enumerate(numbers)}
        admin.create_topics([NewTopic("racks", num_partitions=-1, replication_factor=-1, replica_assignments=where)])
        admin.wait_for_topics(["racks"])
    return "racks"


def test_each_member_owns_the_partitions_of_its_rack(brokers: Kafka, redis_url: str, group: str) -> None:
    topic = led_by(brokers, *LED_BY)
    tps = [TopicPartition(topic, p) for p in range(len(LED_BY))]
    with closing(Group(brokers, redis_url, group)) as members:
        racks = dict(zip(tps, map(RACKS.__getitem__, LED_BY), strict=True))
        eventually(lambda: members.log().leader_racks([topic]) == racks, "both brokers lead partitions", 60)
        settings = GroupSettings(group, session_ms=20_000, assignors=(RackAware(),))
        fields = {"a": {"host": "h1", "rack": "a"}, "b": {"host": "h2", "label.zone": "b"}}
        of_racks = {r: members.service(Topics((topic,)), settings=settings, fields=fields[r]) for r in fields}

        def owned() -> dict[str, dict[TopicPartition, tuple[HashRange, ...]]]:
            for service in of_racks.values():
                service.next_offset(StreamOffset(group), UNLIMITED)
            return {rack: dict(service.state.owning.ranges) for rack, service in of_racks.items()}

        of_racks["a"].first_positions()
        wanted = {rack: {tp: (WHOLE,) for tp in tps if racks[tp] == rack} for rack in fields}
        eventually(lambda: owned() == wanted, "each member owns what its rack leads", 60)
