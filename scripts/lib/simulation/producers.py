"""Producers of the simulated topic: each writes a key to the partition by the partition count that it knows.

When the topic grows they learn of it one by one, as producers do that refresh their metadata. Until then one producer
writes to the old partitions while another already writes to the new ones. Knows the promised order
(rule: growth-order), and the claims of the group about it:

    the topic        1 ---> 2 ------------> 4         a record that its producer wrote with 1, another one with 4
    the group says      kept    kept                  then the two must leave in order
                        kept    may be out of order   then they may not
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random

from coordinator.values.subscription import TopicPartition
from simulation.kafka import KEYS, TOPIC, Record, SimulatedKafka

LEARN_MS = 3_000  # how long a producer may use an old partition count
KEPT, UNLESS_TWICE = "key order across it is kept", " if it did not grow twice within seconds"
SECONDS_MS = 20_000  # a member looks each 15 s; the clock of Redis may be set back meanwhile
_STRETCH, _MOST_OFFSETS = 0.3, 8_000


@dataclass(slots=True)
class Producer:
    """One producer, and the partition counts that it knows of each topic, by time."""

    name: str
    learns: dict[str, list[tuple[int, int]]]
    written: dict[bytes | None, int] = field(default_factory=dict)

    def partitions(self, topic: str, now_ms: int) -> int:
        """The number of partitions that it knows now."""
        return max(count for at, count in self.learns[topic] if at <= now_ms)


class Producers:
    """All producers of the topic. A quarter of the schedules choose partitions at random, as some users do."""

    def __init__(self, kafka: SimulatedKafka, random: Random) -> None:
        self._kafka, self._random = kafka, random
        self._by_key = random.random() < 0.75
        self._all = [Producer(name, {t: [(0, kafka.partitions)] for t in kafka.topics}) for name in "xyz"]
        self._promised = True
        self._holes = random.choice((0.0, 0.0, 0.3))  # the part of offsets that hold no record
        self.stretches: Random | None = None  # if set, compaction leaves long stretches without a record
        self.founded = 0  # number of partitions at the creation of the group
        self.counts: set[int] = set()  # numbers of partitions whose growth the group knows
        self._grown: list[tuple[str, int, int, int]] = []  # each growth: its topic, its time, and the numbers
        self._kept: set[tuple[int, int]] = set()  # the growths across which the group says that order is kept

    def grow(self, partitions: int, now_ms: int, topics: Collection[str] = ()) -> None:
        """All topics grow, or these; each producer learns of it later."""
        growing = [topic for topic in topics or self._kafka.topics if self._kafka.count(topic) < partitions]
        self._grown += [(topic, now_ms, self._kafka.count(topic), partitions) for topic in growing]
        for topic in growing:
            while self._kafka.count(topic) < partitions:
                self._kafka.add_partition(topic)
        for producer in self._all:
            learned = now_ms + self._random.randint(0, LEARN_MS)
            for topic in growing:
                producer.learns[topic].append((learned, partitions))

    def break_promise(self) -> None:
        """A grace may end before producers have learned of the growth: then no order is promised across it."""
        self._promised = False

    def write(self, now_ms: int, most: int) -> None:
        """One record, unless the log that it belongs to is full."""
        producer, key = self._random.choice(self._all), self._random.choice((*KEYS, None))
        topics = self._kafka.topics
        topic = topics[0] if len(topics) == 1 else self._random.choice(topics)
        known = producer.partitions(topic, now_ms)
        number = self._random.randrange(known) if key is None or not self._by_key else KEYS.index(key) % known
        tp = TopicPartition(topic, number)
        if self.stretches and self.stretches.random() < _STRETCH and len(self._kafka.logs[tp]) < _MOST_OFFSETS:
            self._kafka.leave_stretch(tp, self.stretches.randint(100, 2_000))
        if (len(self._kafka.records[tp]) if self.stretches else len(self._kafka.logs[tp])) < most:
            if self._random.random() < self._holes:
                self._kafka.leave_hole(tp)
                return
            producer.written[key] = producer.written.get(key, 0) + 1
            self._kafka.produce(tp, key, producer.name, producer.written[key], known)

    def ordered(self, earlier: Record, later: Record) -> bool:
        """Whether order is promised between two records of a key that one producer wrote to different partitions.

        None is for joined topics: the new partitions of one wait for those of another.
        """
        promised = self._promised and len(self._kafka.topics) == 1
        return promised and (self._is_new(earlier, later) or self._claimed(earlier, later))

    def _is_new(self, earlier: Record, later: Record) -> bool:
        """Whether the later one is in a partition that is new to the producer and to the group.

        The group knows nothing of a growth before its creation.
        """
        before = max(earlier.known, self.founded)
        return before in self.counts and later.tp.partition >= before

    def _claimed(self, earlier: Record, later: Record) -> bool:
        """Whether the group says of each growth between two records that it keeps the order of all keys.

        It says so of producers that choose partitions by key, as Kafka's do.
        """
        between = [(old, new) for _, _, old, new in self._grown if earlier.known <= old and new <= later.known]
        said = all(any(old <= a and b <= new for old, new in self._kept) for a, b in between)
        return self._by_key and bool(between) and said

    def hear(self, old: int, new: int, words: str, topic: str = TOPIC) -> bool:
        """The words of the group about a growth that it has recorded; whether they claim order for all keys."""
        kept = self._claims(topic, old, new, words)
        if kept:
            self._kept.add((old, new))
        return kept

    def false_claim(self, old: int, new: int, words: str, topic: str = TOPIC) -> str:
        """The steps of a growth that moved keys between older partitions, though its words claim order; or empty."""
        steps = self._steps(topic, old, new)
        claims = any(b % a for _, a, b in steps) and self._claims(topic, old, new, words)
        return ", ".join(f"{a} -> {b} at {at}" for at, a, b in steps) if claims else ""

    def _claims(self, topic: str, old: int, new: int, words: str) -> bool:
        times = [at for at, _, _ in self._steps(topic, old, new)]
        excused = words == KEPT + UNLESS_TWICE and len(times) > 1 and times[-1] - times[0] <= SECONDS_MS
        return words.startswith(KEPT) and not excused

    def _steps(self, topic: str, old: int, new: int) -> list[tuple[int, int, int]]:
        return [(at, a, b) for name, at, a, b in self._grown if name == topic and old <= a and b <= new]

    def in_steps(self, partitions: int, most: int) -> list[tuple[int, int]]:
        """The pairs of growths that look like one to a multiple, and move keys between older partitions."""
        ends = range(2 * partitions, most + 1, partitions)
        steps = ((middle, end) for end in ends for middle in range(partitions + 1, end))
        return [(middle, end) for middle, end in steps if middle % partitions or end % middle]

    def recorded(self, old: int, new: int) -> None:
        """The group has recorded a growth. It may have missed others that kept to multiples."""
        self.counts |= {n for n in range(old, new) if n == old or (n % old == 0 and new % n == 0)}
