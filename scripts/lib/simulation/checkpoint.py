"""A checkpoint folder, and the facts that its operator learned from the errors of its drivers."""

from dataclasses import dataclass, field

from coordinator.values.record_filter import EVERYTHING, RecordFilter
from simulation.pins import Pinned
from simulation.promises import Attempt


@dataclass(slots=True)
class Checkpoint:
    """A checkpoint folder, which outlives its drivers."""

    name: str
    wal: list[str] = field(default_factory=list)
    committed: set[int] = field(default_factory=set)
    attempts: dict[int, Attempt] = field(default_factory=dict)
    topics: tuple[str, ...] = ()  # to which its drivers subscribe; empty: all
    shared: bool = False  # two drivers used it at once: then Spark only promises to end one of them
    replaced: bool = False  # its group was deleted and created anew: its operator deletes it
    lost: bool = False  # a driver failed because nothing proves a position: its operator goes on at earliest
    copied: bool = False  # it is a copy, or has one
    taken: int = 0  # number of batch ids from 0 on that the sink has from another checkpoint: it skips them
    skipped: bool = False  # the sink skipped one of them: its operator sets a new output for the query
    pinned: Pinned = ()  # the ranges that its last driver named
    assigned: bool = False  # whether its last driver named the partitions, in Spark's form
    filter: RecordFilter = EVERYTHING  # of its last driver
    planned_with: list[RecordFilter] = field(default_factory=list)  # the filter of each entry of the WAL
    needs: RecordFilter | None = None  # a driver had another filter than its batch: its operator ends that batch first
    aged: bool = False  # a driver failed because records are gone: its operator goes on without them
