"""A primary that dies before its replica has all: the replica is found to be behind (rule: loss-of-state)."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

import kafka_groups
import servers
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, batch, read, records, subscribed
from streams import eventually, keyed
from topics import Kafka


@dataclass
class Pair:
    """Two servers, and the address of whichever is the primary: a link to its socket."""

    primary: servers.Server
    replica: servers.Server
    link: Path

    def follow(self, port: int) -> None:
        """Make the replica follow the server on that port."""
        self._replica("REPLICAOF", servers.HOST, port)

    def part(self) -> None:
        """The replica receives nothing more."""
        (nowhere,) = servers.free_ports(1)
        self.follow(nowhere)

    def caught_up(self) -> bool:
        """Whether the replica has all that the primary has."""
        with closing(redis.Redis.from_url(self.primary.address)) as primary:
            infos = [primary.info("replication"), self._replica("INFO", "replication")]
        same = infos[0]["master_repl_offset"] == infos[1].get("slave_repl_offset")
        return bool(same and infos[1]["master_link_status"] == "up")

    def fail_over(self) -> None:
        """The primary dies, the replica is promoted and takes its address."""
        self.primary.stop()
        self._replica("REPLICAOF", "NO", "ONE")
        self.link.unlink()
        self.link.symlink_to(str(self.replica.local_address).removeprefix("unix://"))

    def _replica(self, *words: object) -> dict[str, object]:
        with closing(redis.Redis.from_url(self.replica.address)) as client:
            return client.execute_command(*words)  # type: ignore[no-untyped-call, no-any-return]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    started, ports = list[servers.Server](), servers.free_ports(2)
    for name, port in zip(("one", "two"), ports, strict=True):
        (tmp_path / name).mkdir()
        started.append(servers.start_valkey(tmp_path / name, port, more=("--repl-diskless-sync-delay", "0")))
    link = tmp_path / "current"
    link.symlink_to(str(started[0].local_address).removeprefix("unix://"))
    made = Pair(started[0], started[1], link)
    made.follow(ports[0])
    yield made
    for server in started:
        server.stop()


@pytest.fixture
def members(kafka: Kafka, pair: Pair, group: str) -> Iterator[Group]:
    made = Group(kafka, f"unix://{pair.link}", group)
    yield made
    made.close()


def test_a_member_finds_that_a_stale_replica_has_taken_over_and_repeats_nothing(
    members: Group, tp: TopicPartition, pair: Pair
) -> None:
    service, first = members.begun(subscribed(tp), session_ms=2_000)
    assert service.next_offset(first, UNLIMITED) is None
    eventually(pair.caught_up, "the replica has all")
    nonce = members.state.meta["nonce"]

    pair.part()
    members.kafka.produce(tp.topic, keyed(3))
    second = batch(service, first)
    assert service.next_offset(second, UNLIMITED) is None
    assert members.state.stable == {tp: 8}

    pair.fail_over()
    assert members.state.stable == {tp: 5}, "it knows less than the primary did"
    members.kafka.produce(tp.topic, keyed(2))
    assert records(batch(service, second)) == read(tp, 8, 10)
    assert members.state.meta["nonce"] != nonce
    assert members.events.count("recover") == 1
    assert members.redis.hget(GroupKeys(members.name).stable(tp.topic), "0") == "8"


def test_a_stale_replica_without_newer_proof_is_accepted_and_records_repeat(
    members: Group, tp: TopicPartition, pair: Pair
) -> None:
    first, end = members.begun(subscribed(tp), session_ms=300)
    eventually(pair.caught_up, "the replica has all")
    pair.part()
    assert first.next_offset(end, UNLIMITED) is None, "and the primary has writes that the replica never receives"
    pair.fail_over()
    kafka_groups.forget(members.kafka.bootstrap, members.name)

    again = members.started(subscribed(tp), session_ms=300)
    assert members.events.count("recover") == 1
    assert records(batch(again, StreamOffset(members.name))) == read(tp, 0, 5), "onStateLoss need not decide"
