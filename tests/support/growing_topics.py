"""Producers that write to a topic while its partitions grow in number, and the verdict on the order of its keys."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from topics import Kafka, Record

KEYS = 16


@dataclass
class Producer:
    """Writes its keys in turn, each to a partition of the topic as it knows it."""

    name: str
    partitions: int  # its idea of their number: stale until it refreshes
    written: int = 0

    def records(self, count: int) -> list[Record]:
        """The next records; the value names the writer, the order and the number of partitions that it knows."""
        first, self.written, known = self.written, self.written + count, self.partitions
        return [
            Record(f"{self.name} {n} {known}".encode(), b"%d" % (n % KEYS), n % KEYS % known)
            for n in range(first, self.written)
        ]


def topic_of_two(kafka: Kafka) -> str:
    return kafka.create_topic("growing", partitions=2)


@dataclass(frozen=True)
class Arrival:
    """A record at its first delivery; batches of all members are numbered together."""

    batch: int
    partition: int
    producer: str
    number: int
    known: int  # partitions, as its producer knew
    key: str

    @classmethod
    def of(cls, batch: int, partition: int, key: str, value: str) -> Self:
        """A record as a sink received it."""
        producer, number, known = value.split()
        return cls(batch, partition, producer, int(number), int(known), key)


def out_of_order(arrivals: Iterable[Arrival]) -> list[tuple[Arrival, Arrival]]:
    """The pairs of a producer and key whose later record came before the earlier one, or together with it."""
    wrong = []
    came = defaultdict[tuple[str, str], list[Arrival]](list)
    for each in arrivals:
        before = came[each.producer, each.key]
        wrong += [(each, b) for b in before if each.number < b.number]
        together = (b for b in before if b.batch == each.batch and b.partition != each.partition)
        wrong += [(b, each) for b in together if b.number < each.number]
        before.append(each)
    return wrong


def in_new_partitions(pairs: Iterable[tuple[Arrival, Arrival]]) -> list[tuple[Arrival, Arrival]]:
    """The pairs whose order is promised at any growth: in one partition, or moved to one new to the producer."""
    return [(a, b) for a, b in pairs if a.partition == b.partition or b.partition >= a.known]
