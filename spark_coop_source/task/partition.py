"""The input partition of one Spark task: its slices, and the settings to read them.

A value that the driver pickles. It has Kafka's settings; nothing of Redis, of the group or of the offset JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from pyspark.sql.datasource import InputPartition

from coordinator.plan.sharing import SharedStretches
from coordinator.progress.acknowledgement import Strip
from coordinator.progress.failing import FailingRecord
from coordinator.progress.slices import Slice
from coordinator.values.record_filter import EVERYTHING, RecordFilter
from coordinator.values.subscription import TopicPartition
from spark_coop_source.fetch.read_options import ReadOptions
from spark_coop_source.telemetry.report import ReportTo


@dataclass(frozen=True, slots=True)
class Sharing:
    """The task's part in a shared fetch with other tasks of its host."""

    batch: str  # unique: of this plan of this reader
    most_bytes: int  # of the cache
    stretches: SharedStretches


@dataclass(frozen=True, slots=True)
class TaskEnding:
    """How long the task may read; it then ends its slices where they are (rule: seal-before-sink).

    Every task reports that it has ended (rule: batch-clock).
    """

    batch: str  # the digest
    task: int = 0  # its number in the batch
    share_ms: float = 0.0  # of the time budget
    retries_ms: float = inf  # how long it may wait for further attempts on failing records
    by_time: bool = True  # False: only failing keys may end early
    required: bool = True  # else a task that cannot report its ends reads all of its slices
    early: bool = True  # False: it reads all of its slices in any case
    failing: tuple[FailingRecord, ...] = ()  # known ones, of hashes and offsets that the task reads
    room: Mapping[TopicPartition, int] = field(default_factory=dict)  # more keys that it may defer; none: any number


@dataclass(frozen=True, slots=True)
class SlicePartition(ReadOptions, InputPartition):
    """One input partition: slices of any partitions, and how to reach their records.

    Travels pickled from the reader's process to a worker; may be empty.
    """

    slices: tuple[Slice, ...]
    kafka: Mapping[str, object] = field(repr=False)  # holds the credentials
    columns: tuple[str, ...]  # of arrow_output.schema.NAMED
    fail_on_data_loss: bool
    filter: RecordFilter = field(default=EVERYTHING, repr=False)  # keys may be confidential
    report: ReportTo | None = None  # address for the costs of its slices, and for its ends
    singly: bool = False  # a struck lane: each record is reported before its call of the function
    ending: TaskEnding | None = None  # None: it reads all of its slices
    sharing: Sharing | None = None  # None: no other task reads these records
    strips: Mapping[TopicPartition, tuple[Strip, ...]] | None = None  # None: rows have no column `acknowledgement`
    deadline_ms: int | None = None  # since 1970: a task that begins later reads nothing; None in a batch query
