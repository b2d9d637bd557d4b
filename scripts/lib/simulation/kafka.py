"""Kafka in memory: topics that grow, and Kafka's own group. Each driver uses it through a `SimulatedLog`."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from operator import attrgetter
from random import Random

from coordinator.errors import KafkaAccessError, LogError
from coordinator.progress.slices import Slice
from coordinator.values.key_hash import hash_key, hash_record
from coordinator.values.offset_spec import AtTimestamps, Earliest, Latest, OffsetSpec
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import Assigned, Bounds, Pattern, Subscription, Topic, TopicPartition, Topics
from simulation.brokers import Brokers

TOPIC, JOINED, OTHER = "orders", "payments", "refunds"
RECORDS_A_LEADER = 5
SECOND_MS, RETRY_MS = 1_000, 250
_offset = attrgetter("offset")
RACKS = ("a", "b")


def _spread_keys(count: int) -> tuple[bytes, ...]:
    """Keys whose hashes are spread about evenly, so that every cut separates some of them."""
    candidates = sorted((b"key-%d" % i for i in range(64)), key=hash_key)
    return (b"", *(candidates[i * len(candidates) // (count - 1)] for i in range(count - 1)))


KEYS = _spread_keys(7)
HASHES = tuple(hash_key(key) for key in KEYS)


@dataclass(frozen=True, slots=True, order=True)
class Record:
    """A record with its point on the plane; `key` is None where it has no order."""

    tp: TopicPartition
    offset: int
    hash: int = field(compare=False)
    key: bytes | None = field(compare=False)
    producer: str = field(default="", compare=False)
    number: int = field(default=0, compare=False)  # among the producer's records of this key
    known: int = field(default=0, compare=False)  # the partitions that the producer knew
    life: int = 0  # how often its log had been cut or created again before

    def __str__(self) -> str:
        who = f"{KEYS.index(self.key)}{self.producer}{self.number}" if self.key is not None else "-"
        topic = "" if self.tp.topic == TOPIC else f"{self.tp.topic}-"
        return f"{topic}{self.tp.partition}:{self.offset}({who})"


class SimulatedKafka:
    """One topic's logs, or those of joined topics, and the commits of Kafka's own group."""

    def __init__(
        self,
        partitions: int,
        topics: tuple[str, ...] = (TOPIC,),
        brokers: Brokers | None = None,
        now_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self.topics = topics
        self.apart = OTHER in topics  # members subscribe to different topics
        self.brokers, self.now_ms = Brokers() if brokers is None else brokers, now_ms
        self.logs: dict[TopicPartition, list[Record]] = {}
        self.beginnings: dict[TopicPartition, int] = {}
        self.elected: dict[TopicPartition, list[int]] = {}  # the first offset of each new leader
        self.group_offsets: dict[TopicPartition, tuple[int, str]] = {}
        self.mirror = ""  # or: fails (no commit succeeds), denied (no right to use Kafka's own group)
        self.cluster_policies: list[dict[str, str]] = []  # changes
        self.holes: set[Record] = set()  # of compaction, or markers of transactions
        self.records: dict[TopicPartition, list[Record]] = {}  # the logs without their holes
        self.lives: dict[TopicPartition, int] = {}  # how often each log was cut or created again
        self.gone: set[Record] = set()  # of logs before that
        self._created: Counter[str] = Counter()
        for _ in range(partitions):
            self.add_partition()

    def beside(self) -> "SimulatedKafka":
        """The same logs, as another group sees them: with a group of Kafka's own."""
        other = copy(self)
        other.group_offsets = {}
        return other

    def add_partition(self, *topics: str) -> None:
        """These topics grow, or all."""
        for tp in [TopicPartition(topic, self.count(topic)) for topic in topics or self.topics]:
            self.logs[tp], self.records[tp], self.beginnings[tp], self.elected[tp] = [], [], 0, []
            self.lives[tp] = 0
            self.brokers.created(tp, self.now_ms())

    @property
    def partitions(self) -> int:
        """The number of partitions of the topic that has most."""
        return max(map(self.count, self.topics))

    def count(self, topic: str) -> int:
        """The number of partitions of a topic."""
        return sum(tp.topic == topic for tp in self.logs)

    def produce(
        self, tp: TopicPartition, key: bytes | None, producer: str = "", number: int = 0, known: int = 0
    ) -> None:
        """Append one record. After every few records another broker leads the partition, without loss."""
        log = self.logs[tp]
        if len(log) % RECORDS_A_LEADER == RECORDS_A_LEADER - 1:
            self.elected[tp].append(len(log))
        of_producer = producer, number, known
        log.append(Record(tp, len(log), hash_record(key, len(log)), key, *of_producer, self.lives[tp]))
        self.records[tp].append(log[-1])

    def leave_hole(self, tp: TopicPartition) -> None:
        """Append an offset that holds no record."""
        self.produce(tp, None)
        self.holes.add(self.records[tp].pop())

    def leave_stretch(self, tp: TopicPartition, count: int) -> None:
        """Append so many offsets that hold no record, as compaction leaves them."""
        log = self.logs[tp]
        log += (Record(tp, offset, 0, None) for offset in range(len(log), len(log) + count))
        self.holes.update(log[-count:])

    def read(self, wanted: Slice) -> list[Record]:
        """The remaining records of a slice, in offset order."""
        found = self.between(wanted.topic_partition, wanted.offsets.start, wanted.offsets.until)
        return [r for r in found if r.hash in wanted.hashes and not self.aged(r)]

    def between(self, tp: TopicPartition, start: int, until: int) -> list[Record]:
        """The records of these offsets, without holes."""
        log = self.records[tp]
        return log[bisect_left(log, start, key=_offset) : bisect_left(log, until, key=_offset)]

    def aged(self, record: Record) -> bool:
        """Whether retention or compaction has removed a record: then no promise covers it."""
        return record.offset < self.beginnings[record.tp] or record in self.holes or record in self.gone

    def cut(self, tp: TopicPartition, at: int) -> None:
        """A broker without the latest records leads the partition: the log ends here."""
        self.gone.update(self.logs[tp][at:])
        del self.logs[tp][at:]
        self.records[tp] = [r for r in self.records[tp] if r.offset < at]
        self.elected[tp] = [min(first, at) for first in self.elected[tp]] + [at]
        self.lives[tp] += 1
        self.brokers.forget(tp)

    def create_again(self, topic: str, *, forgets: bool) -> None:
        """The topic is deleted and created again, with another id; Kafka may forget the offsets of groups."""
        self._created[topic] += 1
        for tp in (tp for tp in self.logs if tp.topic == topic):
            self.cut(tp, 0)
            self.elected[tp], self.beginnings[tp] = [], 0
            if forgets:
                self.group_offsets.pop(tp, None)

    def described(self) -> dict[str, Topic]:
        """All topics."""
        numbers = {name: tuple(tp.partition for tp in self.logs if tp.topic == name) for name in self.topics}
        return {name: Topic(name, self._id(name), numbers[name], self.count(name)) for name in self.topics}

    def _id(self, name: str) -> str:
        again = self._created[name]
        return f"id-{self.topics.index(name) + 1}" + (f".{again}" if again else "")

    def ends_of_epochs(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The first offset of the leader after each of these; without leaders that the logs do not know."""
        ends = {tp: [*self.elected[tp], len(self.logs[tp])] for tp in epochs}
        return {tp: ends[tp][epoch] for tp, epoch in epochs.items() if epoch < len(ends[tp])}

    def elect(self, tp: TopicPartition) -> int:
        """Another broker leads the partition, without loss; its high watermark at first."""
        self.elected[tp].append(len(self.logs[tp]))
        return self.brokers.elect(tp, self.beginnings[tp], len(self.logs[tp]), self.now_ms())

    def end(self, tp: TopicPartition, *, committed: bool = False) -> int:
        """The end of a log, as its leader answers now."""
        return self.brokers.end(tp, len(self.logs[tp]), self.now_ms(), committed=committed)

    def ends(self) -> dict[TopicPartition, int]:
        """The end of each log."""
        return {tp: len(log) for tp, log in self.logs.items()}


def _named(subscription: Subscription, topics: Collection[str]) -> list[str]:
    match subscription:
        case Topics(names):
            return [name for name in topics if name in names]
        case Pattern(regex):
            return [name for name in topics if re.search(regex, name)]
        case Assigned(partitions):
            return [name for name in topics if any(tp.topic == name for tp in partitions)]


class SimulatedLog:
    """`coordinator.values.log.Log` over those logs; every call is a scheduling point.

    A call that needs all answers waits for silent leaders. It is a mistake if its caller has seen that one is silent,
    unless it asks where a query starts, which has its moment (rule: silent-leader).
    """

    def __init__(
        self, kafka: SimulatedKafka, turn: Callable[..., None], *, committed: bool = False, early: Random | None = None
    ) -> None:
        self._kafka, self._turn, self._committed, self._early = kafka, turn, committed, early
        self._seen_silent = frozenset[TopicPartition]()  # at the last look

    def _silent(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        return frozenset(tp for tp in partitions if self._kafka.brokers.silent(tp, self._kafka.now_ms()))

    def _wait_for(self, partitions: Iterable[TopicPartition], *, starts: bool = False) -> None:
        """Until all leaders answer."""
        wanted = frozenset(partitions)
        if (known := self._silent(wanted) & self._seen_silent) and not starts:
            raise AssertionError(f"LEADER: a member waits for the leader of {min(known)}, which it has seen silent")
        while self._silent(wanted):
            self._turn(RETRY_MS)

    def topics(self, subscription: Subscription, *, quick: bool = False) -> dict[str, Topic]:
        """The topics with their partitions; for `Assigned` with the assigned ones only."""
        self._turn()
        read = subscription.partitions if isinstance(subscription, Assigned) else self._kafka.logs
        numbers = {name: tuple(tp.partition for tp in read if tp.topic == name) for name in self._kafka.topics}
        if self._kafka.apart:
            numbers = {name: numbers[name] for name in _named(subscription, self._kafka.topics)}
        known = self._kafka.described()
        return {name: Topic(name, known[name].id, of, known[name].total) for name, of in numbers.items()}

    def bounds(
        self, partitions: Iterable[TopicPartition], beginnings: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, Bounds]:
        """Beginning and end of each log."""
        self._turn()
        wanted = tuple(partitions)
        self._wait_for(wanted)
        return self._bounds(wanted, beginnings)

    def _bounds(
        self, partitions: Iterable[TopicPartition], beginnings: Mapping[TopicPartition, int] | None
    ) -> dict[TopicPartition, Bounds]:
        first = self._kafka.beginnings if beginnings is None else beginnings
        ends = {tp: self._kafka.end(tp, committed=self._committed) for tp in partitions}
        return {tp: Bounds(first[tp], end, len(self._kafka.elected[tp])) for tp, end in ends.items()}

    def bounds_now(
        self, partitions: Iterable[TopicPartition], beginnings: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, Bounds]:
        """The same of the partitions whose leader answers."""
        self._turn()
        wanted = frozenset(partitions)
        silent = self._silent(wanted)
        self._seen_silent = self._seen_silent - wanted | silent
        return self._bounds(sorted(wanted - silent), beginnings)

    def watch(self, ends: Mapping[TopicPartition, int], wake: Callable[[], None]) -> int:
        """In one of four waits the fetch ends early: by records, or by nothing that a member would find.

        In another one, fetches seem to watch all ends, and none of them returns.
        """
        if self._early is None:
            return 0
        chance = self._early.random()
        if chance < 0.25:
            wake()
        return 2_000 if chance > 0.75 else 0

    def ends_of_epochs(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The first offset of the next leader."""
        self._turn()
        self._wait_for(epochs)
        return self._kafka.ends_of_epochs(epochs)

    def high_watermarks_now(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The ends of the logs whose leader answers."""
        self._turn()
        wanted = frozenset(partitions)
        return {tp: self._kafka.end(tp) for tp in sorted(wanted - self._silent(wanted))}

    def resolve(self, spec: OffsetSpec, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first or the last offset, or the offset of a time."""
        self._turn()
        wanted = tuple(partitions)
        self._wait_for(wanted, starts=True)
        match spec:
            case Earliest():
                return {tp: self._kafka.beginnings[tp] for tp in wanted}
            case Latest():
                return {tp: self._kafka.end(tp, committed=self._committed) for tp in wanted}
            case AtTimestamps():
                ends = self._kafka.ends()
                return {tp: min(ends[tp], -(-ms // SECOND_MS)) for tp, ms in spec.timestamps_ms.items()}
        raise NotImplementedError(f"the simulation does not start at {spec}")

    def first_times(self, stretches: Mapping[TopicPartition, OffsetRange]) -> dict[TopicPartition, int | None]:
        """A record is made each second: its time is its offset."""
        self._turn()
        first = self._kafka.beginnings
        return {
            tp: max(stretches[tp].start, first[tp]) * SECOND_MS for tp in stretches.keys() - self._silent(stretches)
        }

    def leader_racks(self, topics: Iterable[str]) -> dict[TopicPartition, str]:
        """Two racks lead the partitions by turns."""
        self._turn()
        return {tp: RACKS[tp.partition % len(RACKS)] for tp in self._kafka.logs if tp.topic in set(topics)}

    def cluster_policies(self) -> tuple[str, dict[str, str]]:
        """The policies that administrators have set, in the order of their changes."""
        self._turn()
        changes = self._kafka.cluster_policies
        return (
            (f"id-p {len(changes)}", {k: v for change in changes for k, v in change.items()}) if changes else ("", {})
        )

    def must_hold_offsets(self, _: str) -> None:
        """The name is free."""

    def group_offsets(self, _: str, *, patient: bool = True) -> dict[TopicPartition, tuple[int, str]]:
        """The mirror's offsets."""
        self._turn()
        if self._kafka.mirror == "denied":
            raise KafkaAccessError("no right to read the group in the simulation")
        return dict(self._kafka.group_offsets)

    def commit_group_offsets(
        self, _: str, offsets: Mapping[TopicPartition, tuple[int, str]], *, patient: bool = True
    ) -> bool:
        """Write the mirror."""
        self._turn(self._kafka.brokers.mirror_delay_ms())
        if self._kafka.mirror:
            raise LogError("no mirror in the simulation")
        self._kafka.group_offsets |= offsets
        return True

    def delete_group_offsets(self, _: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete the mirror of these partitions."""
        self._turn()
        for tp in partitions:
            self._kafka.group_offsets.pop(tp, None)

    def close(self) -> None:
        """Does nothing: there is no connection."""
