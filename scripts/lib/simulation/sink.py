"""The sink, which checks that a key's first deliveries come in order (rule: key-order).

BATCH    a batch's records appear at once, when it completes, and never again for the same batch id
TASK     a task's records appear at once, when it ends; of a killed batch some tasks' records are there
RECORD   each record appears when a task writes it; a task may begin again, or outlive its driver
"""

from collections.abc import Callable, Collection, Iterable
from enum import Enum, auto

from coordinator.values.subscription import TopicPartition
from simulation.kafka import Record


class Violation(AssertionError):  # noqa: N818 - what was violated stands in the message
    """The code broke a promise."""


class Visible(Enum):
    """The records that appear at once."""

    BATCH = auto()
    TASK = auto()
    RECORD = auto()


class Sink:
    """Receives records, and knows which of them a completed batch had."""

    def __init__(
        self,
        visible: Visible,
        aged: Callable[[Record], bool],
        ordered: Callable[[Record, Record], bool],
        *,
        remembers: bool = False,
    ) -> None:
        self.by_key = True  # whether the group keeps the order of each key
        self._remembers = remembers  # the batch ids that it has, as Spark's file sink does
        self.visible, self._aged, self._ordered = visible, aged, ordered
        self._of_producer: dict[tuple[str, bytes | None], list[Record]] = {}
        self.delivered: set[Record] = set()
        self.completed: dict[Record, list[tuple[str, int]]] = {}  # the batches that confirm each record
        self.skipped: set[Record] = set()  # an operator's reset skipped these: the group owes them no more
        self.excused: set[Record] = set()  # missing when a reset moved positions: they may come out of order
        self.repeated: Record | None = None  # a record that two batches completed
        self.repeated_by_one: Record | None = None  # a record that two batches of one checkpoint completed
        self.unconfirmed: set[tuple[str, int]] = set()  # batches that nobody can confirm: their drivers were killed
        self.highest: dict[bytes | None, dict[TopicPartition, int]] = {}  # highest offset of each key
        self._batches: set[tuple[str, int]] = set()
        self.crossed = 0  # pairs of records in order, of which a growth was between

    def write(self, record: Record) -> None:
        """A task writes a record."""
        if self.visible is Visible.RECORD:
            self._deliver(record)

    def end_task(self, records: Iterable[Record]) -> None:
        """A task has written all of its records."""
        if self.visible is Visible.TASK:
            for record in records:
                self._deliver(record)

    def complete(
        self, checkpoint: str, batch: int, records: Iterable[Record], dropped: Collection[Record] = ()
    ) -> None:
        """The batch is complete; its driver gets the answer. Its filter has dropped some of its records: they are done.

        If a loss moves positions back, a member with another filter may deliver these late.
        """
        records = list(records)
        self.excused.update(r for r in dropped if r not in self.delivered)
        if self.visible is Visible.BATCH and (checkpoint, batch) not in self._batches:
            for record in records:
                self._deliver(record)
            self._batches.add((checkpoint, batch))
        # A repeated batch id with other records would be dropped: so records that were not delivered are not complete.
        done = [*(r for r in records if r in self.delivered), *dropped]
        self.confirm(done, (checkpoint, batch))
        known = {(checkpoint, batch), *self.unconfirmed}
        again = [r for r in done if self.completed[r][0] not in known]
        self.repeated = next(iter(again), self.repeated)
        alone = (r for r in again if self.completed[r][0][0] == checkpoint)
        self.repeated_by_one = next(alone, self.repeated_by_one)

    def skips(self, checkpoint: str, batch: int) -> bool:
        """Whether it has this batch of an earlier life. Then it reads nothing of the replay."""
        return self._remembers and (checkpoint, batch) in self._batches

    def dropped(self, record: Record) -> bool:
        """Whether a filter dropped it: it is done, and was not delivered."""
        return record in self.completed and record not in self.delivered

    def confirm(self, records: Iterable[Record], batch: tuple[str, int]) -> None:
        """This batch confirms the records: it is complete, or is about to acknowledge them."""
        for record in records:
            self.completed.setdefault(record, []).append(batch)

    def take_back(self, records: Iterable[Record], batch: tuple[str, int]) -> None:
        """The acknowledgement was refused; other confirmations of these records stay."""
        for record in records:
            batches = self.completed.get(record, [])  # none after a reset
            if batch in batches:
                batches.remove(batch)
            if not batches:
                self.completed.pop(record, None)

    def reset(self, records: Iterable[Record], done: Callable[[Record], bool]) -> None:
        """An operator has moved positions: unfinished records must come again, finished records need not come."""
        for record in records:
            if record not in self.delivered:
                self.excused.add(record)
            if not done(record):
                self.completed.pop(record, None)
                self.skipped.discard(record)
            elif record not in self.completed:
                self.skipped.add(record)

    def settled(self, record: Record) -> bool:
        """Whether the group owes a record no more."""
        return record in self.completed or record in self.skipped

    def cut(self, tp: TopicPartition, left: Iterable[Record]) -> None:
        """A log was cut: after the records that are `left`, others come at the offsets of delivered ones."""
        for of_key in self.highest.values():
            of_key.pop(tp, None)
        for record in left:
            if record in self.delivered:
                self.highest[record.key][tp] = record.offset

    def _deliver(self, record: Record) -> None:
        of_key = self.highest.setdefault(record.key, {})
        highest = of_key.get(record.tp, -1)
        first = record not in self.delivered and record not in self.excused
        first = first and self.by_key and not self._aged(record)  # aged: the others had to go on without it
        if first and record.key is not None and record.offset < highest:
            raise Violation(f"ORDER: first delivery of {record} after offset {highest} of the same key")
        if first and record.key is not None:
            self._across_growth(record)
        self.delivered.add(record)
        if not self._aged(record):
            of_key[record.tp] = max(highest, record.offset)

    def _across_growth(self, record: Record) -> None:
        of_producer = self._of_producer.setdefault((record.producer, record.key), [])
        for other in of_producer:
            if other.number > record.number and self._ordered(record, other):
                raise Violation(f"GROWTH: first delivery of {record} after {other} of the same producer and key")
            self.crossed += other.number < record.number and other.known < record.known and self._ordered(other, record)
        of_producer.append(record)
