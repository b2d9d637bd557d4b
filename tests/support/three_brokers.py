"""Three brokers for the tests of a file: they are killed, frozen, and always whole again at the end of a test."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from uuid import uuid4

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

import servers
from coordinator.values.subscription import TopicPartition
from topics import Kafka


@dataclass(frozen=True)
class ThreeBrokers:
    """The brokers, with topics on them."""

    brokers: servers.Brokers

    @property
    def kafka(self) -> Kafka:
        return Kafka(self.brokers.bootstrap)

    def topic(self, partitions: int = 3, insync: int = 2) -> str:
        """A topic with three copies of each log: partition p is led by broker p % 3 + 1. A write needs `insync`."""
        return self._created([[(p + n) % 3 + 1 for n in range(3)] for p in range(partitions)], insync)

    def topic_of(self, node: int) -> str:
        """A topic of one partition that only this broker has: without it, there is no leader."""
        return self._created([[node]])

    def topic_without_copies(self) -> str:
        """A topic of three partitions: only broker p + 1 has partition p."""
        return self._created([[1], [2], [3]])

    def leader(self, tp: TopicPartition) -> int:
        with closing(KafkaAdminClient(bootstrap_servers=self.brokers.bootstrap)) as admin:
            found = admin.describe_topics([tp.topic])[0]["partitions"]
        (leader,) = (each["leader_id"] for each in found if each["partition_index"] == tp.partition)
        return int(leader)

    @contextmanager
    def killed(self, *nodes: int) -> Iterator[None]:
        """The brokers are dead within the block, and up again after it."""
        for node in nodes:
            self.brokers.kill(node)
        try:
            yield
        finally:
            for node in nodes:
                self.brokers.start(node)
            self.brokers.wait()

    @contextmanager
    def frozen(self, *nodes: int) -> Iterator[None]:
        """The brokers stand still within the block."""
        for node in nodes:
            self.brokers.freeze(node)
        try:
            yield
        finally:
            for node in nodes:
                self.brokers.thaw(node)
            self.brokers.wait()

    def producer(self, **settings: object) -> closing[KafkaProducer]:
        """A producer, for the body of `with`."""
        return closing(KafkaProducer(bootstrap_servers=self.brokers.bootstrap, **settings))

    def _created(self, copies: list[list[int]], insync: int = 2) -> str:
        name = f"copied-{uuid4().hex[:8]}"
        settings = {"min.insync.replicas": str(min(insync, len(copies[0])))}
        with closing(KafkaAdminClient(bootstrap_servers=self.brokers.bootstrap)) as admin:
            wanted = NewTopic(name, replica_assignments=dict(enumerate(copies)), topic_configs=settings)
            admin.create_topics([wanted])
            admin.wait_for_topics([name])
        return name
