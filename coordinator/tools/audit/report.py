"""The result of an audit: counts of each partition, and the first faults of each kind by offset and batch. Values."""

from dataclasses import dataclass
from typing import Annotated

from coordinator.tools.fields import GroupField, Inclusive, Means, PartitionNumber, StableOffset, TopicField

MOST_NAMED = 1_000
"""Faults of each kind that a partition names; the counts cover all."""

LOST, REPEATED, DISORDER = "lost", "repeated", "out of order"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault with its place."""

    kind: Annotated[str, Means("`lost`, `repeated` or `out of order`.", "FAULT")]
    offsets: Annotated[Inclusive, Means("Its first and its last offset.", "OFFSETS")]
    batches: Annotated[tuple[str, ...], Means("Batches of its rows, or of neighbours of its key.", "BATCH")]
    why: Annotated[str, Means("The reason.", "WHY")]


@dataclass(frozen=True, slots=True)
class PartitionAudit:
    """One partition. Counts are of records of Kafka, except `rows`, `ahead` and `gone`: rows of the sink."""

    topic: TopicField
    partition: PartitionNumber
    start: Annotated[int, Means("First offset of the audit.", "START")]
    stable: StableOffset
    until: Annotated[int, Means("The audit ends before this offset.")]
    records: Annotated[int, Means("Records that are processed, and still in Kafka.", "RECORDS")]
    rows: Annotated[int, Means("Rows of the sink in these offsets.", "ROWS")]
    lost: Annotated[int, Means("Records without a row.", "LOST")]
    repeated: Annotated[int, Means("Records with more than one row.", "REPEATED")]
    out_of_order: Annotated[int, Means("Records out of the order of their key.", "OUT OF ORDER")]
    dead_lettered: Annotated[int, Means("Records in the dead-letter topic, not in the sink.", "DEAD LETTERED")]
    waiting: Annotated[int, Means("Records that are not processed, in gaps above the stable offset.", "WAITING")]
    parked: Annotated[int, Means("Of them, those of quarantined keys and lanes.", "PARKED")]
    deferred: Annotated[int, Means("Of them, those of deferred keys.", "DEFERRED")]
    ahead: Annotated[int, Means("Rows of records that are not processed.", "AHEAD")]
    gone: Annotated[int, Means("Rows whose offset is not a record of Kafka.", "GONE")]
    unordered: Annotated[str, Means("Why the order is not checked; empty if it is.")]
    begin: Annotated[
        int | None,
        Means("If the sink lacks exactly the first records of the audit: the offset after them."),
    ]
    faults: tuple[Fault, ...]

    @property
    def good(self) -> bool:
        """Whether each record that is done is in the sink once, and each key in order."""
        return not (self.lost or self.repeated or self.out_of_order)


@dataclass(frozen=True, slots=True)
class Audit:
    """The result for all partitions."""

    group: GroupField
    sink: Annotated[str, Means("The sink.")]
    partitions: tuple[PartitionAudit, ...]
    notes: Annotated[tuple[str, ...], Means("What the group does not know.")] = ()

    @property
    def good(self) -> bool:
        """Whether no partition has a fault."""
        return all(p.good for p in self.partitions)

    def total(self, count: str) -> int:
        """The sum of a count over all partitions."""
        return sum(getattr(p, count) for p in self.partitions)
