"""Sends dead letters back to the topic that they came from.

    1  read the dead letters, from the position to the end at the start: their places only
    2  dry run: read the topic behind them, and count what comes too late; nothing is written
       else: read them again, and send them in transactions of `CHUNK` records, each with the new position

A record and its position are one transaction. So a redrive that was killed, or run again, goes on where it was, and a
reader with read_committed gets each record once. A reader with read_uncommitted may get the records of the last, killed
transaction twice. The position is a commit of Kafka's group `RedriveRequest.kafka_group`. A second redrive fences the
first.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

from coordinator.kafka.errors import unknown_partitions
from coordinator.kafka.log import KafkaLog
from coordinator.kafka.producer import Outgoing
from coordinator.kafka.transactions import TransactionalProducer
from coordinator.kafka.whole_log import ConsumerRecord, records, stretches_of
from coordinator.kafka.writable import check_writable
from coordinator.tools.operations.redrive_plan import Letter, Order, RedrivePlan, RedriveProgress, check_recordable
from coordinator.values.dead_letter import NO_TIME, DeadLetter, Header
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition, Topics

CHUNK = 500
"""Records of a transaction. A killed redrive repeats as many, for readers with read_uncommitted."""

REDRIVEN = "coop.redriven"
"""A header of each redriven record, after its own: `topic-partition@offset` where it was first."""

Tell = Callable[[str, int, int], None]
"""Called with what is being done, the number of records so far, and about how many there are."""


@dataclass(frozen=True, slots=True)
class RedriveRequest:
    """The dead letters to redrive."""

    group: str
    topic: str  # where they came from
    dead: str  # the dead-letter topic
    key: bytes | None = None  # None: all keys

    @property
    def kafka_group(self) -> str:
        """Kafka's group with the positions of this redrive."""
        return f"{self.group}.redrive.{self.topic}"

    @property
    def transactional_id(self) -> str:
        """At most one process redrives this at a time."""
        return f"{self.kafka_group}.{self.dead}"


class Redrive:
    """One redrive of an operator. Every method may raise a `LogError`."""

    def __init__(self, kafka: Mapping[str, object], log: KafkaLog, wanted: RedriveRequest, tell: Tell) -> None:
        self._kafka, self._log, self._wanted, self._tell = kafka, log, wanted, tell

    def plan(self) -> RedrivePlan:
        """Find the dead letters to redrive, up to the current end of the dead-letter topic."""
        w = self._wanted
        topic = self._log.topics(Topics((w.dead,)))[w.dead]
        bounds = self._log.bounds(TopicPartition(w.dead, number) for number in topic.partitions)
        commits = self._log.group_offsets(w.kafka_group)
        before = {tp: RedriveProgress.parse(*commits.get(tp, (b.beginning, ""))) for tp, b in bounds.items()}
        unread = stretches_of(bounds, {tp: progress.position for tp, progress in before.items()})
        letters: list[Letter] = []
        of_topic: dict[TopicPartition, list[int]] = {tp: [] for tp in bounds}
        others = strange = 0
        of = _offsets_of(unread)
        for number, (at, record, letter) in enumerate(self._dead_letters(unread)):
            self._tell(f"reading {w.dead}", number + 1, of)
            if letter is None:
                strange += 1
            elif (letter.group, letter.record.tp.topic) != (w.group, w.topic):
                others += 1
            else:
                of_topic[at].append(record.offset)
                if w.key in {None, letter.record.key} and not before[at].has(record.offset):
                    letters.append(_place(at, record.offset, letter))
        self._check_partitions(letters)
        ends = {tp: max(b.end, before[tp].position) for tp, b in bounds.items()}
        return RedrivePlan(tuple(letters), of_topic, before, ends, others, strange)

    def order(self, planned: RedrivePlan) -> Order:
        """What the redrive cannot keep in order: reads the topic from the first dead letter to its current end."""
        order = Order(planned.letters)
        unread = stretches_of(self._log.bounds(order.starts), order.starts)
        of = _offsets_of(unread)
        for number, record in enumerate(records(self._kafka, unread)):
            self._tell(f"reading {self._wanted.topic}", number + 1, of)
            order.see(TopicPartition(record.topic, record.partition), record.offset, record.key)
        return order

    def check(self) -> None:
        """Raise an error unless the topic exists and this user may write to it."""
        check_writable(self._kafka, self._wanted.topic)

    def execute(self) -> RedrivePlan:
        """Send the dead letters back. Returns what was redriven."""
        w = self._wanted
        with closing(TransactionalProducer(self._kafka, w.topic, w.transactional_id)) as producer:
            planned = self.plan()  # after the producer, which ended every transaction of another redrive
            for tp in planned.ends:
                check_recordable(planned.progress(tp, _offsets(planned.letters, tp)))
            for tp in planned.ends:
                self._send(producer, planned, tp)
        return planned

    def _send(self, producer: TransactionalProducer, planned: RedrivePlan, tp: TopicPartition) -> None:
        """Redrive one partition of the dead-letter topic."""
        wanted, sent = _offsets(planned.letters, tp), set[int]()
        if not wanted:
            return
        found = self._dead_letters({tp: OffsetRange(min(wanted), max(wanted) + 1)})
        chosen = ((record, letter) for _, record, letter in found if letter and record.offset in wanted)
        while chunk := list(islice(chosen, CHUNK)):
            sent |= {record.offset for record, _ in chunk}
            progress = planned.progress(tp, sent)
            with producer.transaction(self._wanted.kafka_group, {tp: (progress.position, progress.text)}):
                for record, letter in chunk:
                    producer.send(outgoing(letter, f"the dead letter {tp} offset {record.offset}"))
            self._tell(f"redriving {tp}", len(sent), len(wanted))

    def _check_partitions(self, letters: Sequence[Letter]) -> None:
        """Raise an error for a record of a partition that the topic does not have."""
        there = self._log.topics(Topics((self._wanted.topic,)))[self._wanted.topic].partitions
        if missing := {letter.source for letter in letters if letter.source.partition not in there}:
            raise unknown_partitions(missing)

    def _dead_letters(
        self, wanted: Mapping[TopicPartition, OffsetRange]
    ) -> Iterator[tuple[TopicPartition, ConsumerRecord, DeadLetter | None]]:
        for record in records(self._kafka, wanted):
            at = TopicPartition(record.topic, record.partition)
            yield at, record, DeadLetter.parse(record.key, record.value, record.headers)


def _offsets_of(unread: Mapping[TopicPartition, OffsetRange]) -> int:
    """Their offsets, holes included."""
    return sum(len(offsets) for offsets in unread.values())


def outgoing(letter: DeadLetter, about: str) -> Outgoing:
    """The record as it was, in its partition and with its time, and one header more."""
    r = letter.record
    origin: Header = (REDRIVEN, f"{r.tp}@{r.offset}".encode())
    time_ms = None if r.timestamp_ms == NO_TIME else r.timestamp_ms
    return Outgoing(r.tp, r.key, r.value, (*r.headers, origin), time_ms, about)


def _place(at: TopicPartition, offset: int, letter: DeadLetter) -> Letter:
    return Letter(at, offset, letter.record.tp, letter.record.offset, letter.record.key)


def _offsets(letters: Sequence[Letter], tp: TopicPartition) -> set[int]:
    return {letter.offset for letter in letters if letter.at == tp}
