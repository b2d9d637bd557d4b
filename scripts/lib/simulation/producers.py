"""Producers of the simulated topic: each writes a key to the partition that its idea of the topic says.

When the topic grows they learn of it one by one, as producers do that refresh their metadata; until then one
writes to the old partitions what another already writes to the new ones. Knows which order is promised
(rule: growth-order).
"""

from dataclasses import dataclass, field
from random import Random

from coordinator.subscription import TopicPartition
from simulation.kafka import KEYS, TOPIC, Record, SimulatedKafka

LEARN_MS = 3_000  # how long a producer may write by an old idea of the topic


@dataclass(slots=True)
class Producer:
    """One producer, and how many partitions it knows from when on."""

    name: str
    learns: list[tuple[int, int]]
    written: dict[bytes | None, int] = field(default_factory=dict)

    def partitions(self, now_ms: int) -> int:
        """How many partitions it knows now."""
        return max(count for at, count in self.learns if at <= now_ms)


class Producers:
    """All that is written to the topic; a quarter of the schedules choose partitions at random, as some people do."""

    def __init__(self, kafka: SimulatedKafka, random: Random) -> None:
        self._kafka, self._random = kafka, random
        self._by_key = random.random() < 0.75
        self._all = [Producer(name, [(0, len(kafka.logs))]) for name in "xyz"]
        self._promised = self._by_key
        self.founded = 0  # how many partitions the group was founded with

    def grow(self, partitions: int, now_ms: int) -> None:
        """The topic grows; producers learn of it when they do."""
        self._promised &= partitions % len(self._kafka.logs) == 0
        while len(self._kafka.logs) < partitions:
            self._kafka.add_partition()
        for producer in self._all:
            producer.learns.append((now_ms + self._random.randint(0, LEARN_MS), partitions))

    def break_promise(self) -> None:
        """A grace may end before producers have learned: nothing is promised across growth any more."""
        self._promised = False

    def write(self, now_ms: int, most: int) -> None:
        """One record, unless the log that it belongs to is full."""
        producer, key = self._random.choice(self._all), self._random.choice((*KEYS, None))
        known = producer.partitions(now_ms)
        number = self._random.randrange(known) if key is None or not self._by_key else KEYS.index(key) % known
        tp = TopicPartition(TOPIC, number)
        if len(self._kafka.logs[tp]) < most:
            producer.written[key] = producer.written.get(key, 0) + 1
            self._kafka.produce(tp, key, producer.name, producer.written[key])

    def ordered(self, earlier: Record, later: Record) -> bool:
        """Whether order is promised between two records of a key that one producer wrote to different partitions.

        Of a growth before the group was founded the group knows nothing.
        """
        return self._promised and later.tp.partition >= self.founded > 0 and earlier.tp != later.tp
