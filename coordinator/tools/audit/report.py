"""The result of an audit: counts of each partition, and the first faults of each kind by offset and batch. Values."""

from dataclasses import dataclass

from coordinator.values.ranges import OffsetRange

MOST_NAMED = 1_000
"""Faults of each kind that a partition names; the counts cover all."""

LOST, REPEATED, DISORDER = "lost", "repeated", "out of order"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault with its place. Offsets are inclusive text: `45-50`, or `45`."""

    kind: str  # lost, repeated, out of order
    offsets: str
    batches: tuple[str, ...]  # lost: of the neighbours of its key; repeated: all; out of order: its own
    why: str


@dataclass(frozen=True, slots=True)
class PartitionAudit:
    """One partition. Counts are of records of Kafka, except `rows`, `ahead` and `gone`: rows of the sink."""

    topic: str
    partition: int
    start: int  # the first offset of the audit
    stable: int  # the group's stable offset
    until: int  # the audit ends before it: the furthest position, or Kafka's last stable offset if that is lower
    records: int  # done, and still in Kafka: they must be in the sink
    rows: int  # from `start` to `until`
    lost: int
    repeated: int  # records with more than one row
    out_of_order: int
    dead_lettered: int  # not in the sink, and in the dead-letter topic
    waiting: int  # not done, in gaps above the stable offset
    parked: int  # of them, those of parked keys and lanes
    deferred: int  # of them, those of deferred keys
    ahead: int  # rows of records that are not done: of a batch under way
    gone: int  # rows whose offset is no record of Kafka: compacted, expired, or of an aborted transaction
    unordered: str  # why the order is not checked; empty if it is
    begin: int | None  # if the sink lacks exactly the first records from `start` on, the offset after them
    faults: tuple[Fault, ...]

    @property
    def good(self) -> bool:
        """Whether each record that is done is in the sink once, and each key in order."""
        return not (self.lost or self.repeated or self.out_of_order)


@dataclass(frozen=True, slots=True)
class Audit:
    """The result for all partitions."""

    group: str
    sink: str
    partitions: tuple[PartitionAudit, ...]
    notes: tuple[str, ...] = ()  # what the group does not know

    @property
    def good(self) -> bool:
        """Whether no partition has a fault."""
        return all(p.good for p in self.partitions)

    def total(self, count: str) -> int:
        """The sum of a count over all partitions."""
        return sum(getattr(p, count) for p in self.partitions)


def span(offsets: OffsetRange) -> str:
    """A range of offsets for people: `45-50`, or `45`."""
    return str(offsets) if len(offsets) > 1 else str(offsets.start)
