"""A broker for many tests, whose clients that create topics and write records are kept, since connecting takes time."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from kafka import KafkaAdminClient, KafkaProducer

from topics import Kafka


@dataclass(frozen=True, slots=True)
class KeptClients(Kafka):
    """Its clients live until `close`; a producer only until a topic changes, of which it would learn too late."""

    _admins: list[KafkaAdminClient] = field(default_factory=list, compare=False)
    _producers: dict[str | None, KafkaProducer] = field(default_factory=dict, compare=False)

    def close(self) -> None:
        self._forget()
        for admin in self._admins:
            admin.close()
        self._admins.clear()

    def delete_topic(self, topic: str) -> None:
        self._forget()
        Kafka.delete_topic(self, topic)

    def add_partitions(self, topic: str, total: int) -> None:
        self._forget()
        Kafka.add_partitions(self, topic, total)

    def configure(self, topic: str, config: Mapping[str, str]) -> None:
        self._forget()
        Kafka.configure(self, topic, config)

    def _forget(self) -> None:
        for producer in self._producers.values():
            producer.close()
        self._producers.clear()

    @contextmanager
    def _admin(self) -> Iterator[KafkaAdminClient]:
        if not self._admins:
            self._admins.append(KafkaAdminClient(bootstrap_servers=self.bootstrap))
        yield self._admins[0]

    @contextmanager
    def _plain_producer(self, compression: str | None) -> Iterator[KafkaProducer]:
        if compression not in self._producers:
            self._producers[compression] = self._producer(compression_type=compression)
        yield self._producers[compression]
