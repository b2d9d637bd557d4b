"""Starts a task: Spark calls this module in an executor worker, and `slice_reader` does the work.

Imports only the modules that Spark needs to unpickle a task. It imports `slice_reader` inside the call, so that a
worker whose Python lacks a package fails with a named error.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from coordinator.errors import DeadlinePassedError
from spark_coop_source import logs
from spark_coop_source.environment import enough_memory, needed_packages
from spark_coop_source.function.user_function import UserFunction
from spark_coop_source.task.partition import SlicePartition
from spark_coop_source.task.worker import settle

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class TaskReader:
    """The part of a reader that executors get. It can read, and has nothing that only the driver needs."""

    function: UserFunction | None

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The rows of one task as Arrow batches.

        Where the driver plans no task, Spark reads a partition of its own: it is empty.
        """
        return read_slices(partition, self.function) if isinstance(partition, SlicePartition) else iter(())


def read_slices(partition: SlicePartition, function: UserFunction | None = None) -> "Iterator[pa.RecordBatch]":
    """The records whose point (offset, key hash) lies in one of the slices, each once, or the output of `function`.

    Partition by partition, each in offset order; the schema is that of Spark's Kafka source, or the
    function's. It fetches each stretch of offsets once, however many slices share it.

    Raises:
        EnvironmentMismatchError: this worker lacks a package, memory or threads.
        DeadlinePassedError: the task begins later than its batch may last (rule: task-deadline).
        LogError: Kafka refuses, lost records, or does not answer; the subclass names the case.
        FunctionFailedError: the function raised, or its output does not fit its schema.
    """
    logs.configure()
    _refuse_if_late(partition.deadline_ms)
    with needed_packages():
        from spark_coop_source.task import slice_reader  # noqa: PLC0415
    settle()
    with enough_memory():
        yield from slice_reader.batches(partition, function)


def _refuse_if_late(deadline_ms: int | None) -> None:
    """A dead driver's task may start, or be retried, when other members own its ranges. Such a task fails."""
    if deadline_ms is not None and (late := time.time_ns() // 1_000_000 - deadline_ms) > 0:
        raise DeadlinePassedError(
            f"a task began {late / 1000:.1f} s after its batch should have ended; another member may own its key ranges"
            " now",
            "raise longestBatch, or lower batchTimeBudget; compare the clocks of driver and executors",
        )
