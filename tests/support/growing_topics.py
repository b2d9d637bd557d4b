"""A producer that writes to a topic while its partitions grow in number."""

from dataclasses import dataclass

from topics import Kafka, Record

KEYS = 16


@dataclass
class Producer:
    """Writes its keys in turn, each to a partition of the topic as it knows it."""

    name: str
    partitions: int  # its idea of their number: stale until it refreshes
    written: int = 0

    def records(self, count: int) -> list[Record]:
        """The next records; the value names the writer and shows the order."""
        first, self.written = self.written, self.written + count
        return [
            Record(b"%s %d" % (self.name.encode(), n), b"%d" % (n % KEYS), n % KEYS % self.partitions)
            for n in range(first, self.written)
        ]


def topic_of_two(kafka: Kafka) -> str:
    return kafka.create_topic("growing", partitions=2)
