"""The sink, and what it may never see: a key's first deliveries out of order (spec 1).

transactional   a batch's records appear at once, when it completes, and never again for the same batch id
otherwise       each record appears when a task writes it; a task may begin again, or outlive its driver
"""

from collections.abc import Iterable

from coordinator.subscription import TopicPartition
from simulation.kafka import Record


class Violation(AssertionError):  # noqa: N818 - what was violated stands in the message
    """The code broke a promise."""


class Sink:
    """Receives records, and knows which of them a completed batch held."""

    def __init__(self, transactional: bool) -> None:
        self.transactional = transactional
        self.delivered: set[Record] = set()
        self.completed: set[Record] = set()
        self.highest: dict[bytes | None, dict[TopicPartition, int]] = {}  # as a highest-offset-per-key sink keeps it
        self._batches: set[tuple[str, int]] = set()

    def write(self, record: Record) -> None:
        """A task writes a record."""
        if not self.transactional:
            self._deliver(record)

    def complete(self, checkpoint: str, batch: int, records: Iterable[Record]) -> None:
        """The batch is complete, as its driver is told."""
        records = list(records)
        if self.transactional and (checkpoint, batch) not in self._batches:
            for record in records:
                self._deliver(record)
            self._batches.add((checkpoint, batch))
        # A repeated batch id with other records would be dropped: what was not delivered is not complete.
        self.completed.update(r for r in records if r in self.delivered)

    def _deliver(self, record: Record) -> None:
        of_key = self.highest.setdefault(record.key, {})
        highest = of_key.get(record.tp, -1)
        if record not in self.delivered and record.key is not None and record.offset < highest:
            raise Violation(f"ORDER: first delivery of {record} after offset {highest} of the same key")
        self.delivered.add(record)
        of_key[record.tp] = max(highest, record.offset)
