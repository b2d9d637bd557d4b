"""What one Spark task is told and does: its slices, read from Kafka, handed over as Arrow batches.

Runs in executor workers, which know Kafka's settings only: no Redis, no group, no offset JSON. This
file imports no more than Spark needs to unpickle a task, so that a worker whose Python lacks a
package gets a named error; the work is in `slice_reader`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from coordinator.slices import Slice
from spark_coop_source.environment import needed_packages

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class SlicePartition(InputPartition):
    """One input partition: slices of any partitions, and how to reach their records.

    Travels pickled from the reader's process to a worker; may be empty.
    """

    slices: tuple[Slice, ...]
    kafka: Mapping[str, object] = field(repr=False)  # holds the credentials
    include_headers: bool
    poll_timeout_ms: int
    fail_on_data_loss: bool


def read_slices(partition: SlicePartition) -> "Iterator[pa.RecordBatch]":
    """The records whose point (offset, key hash) lies in one of the slices, each once.

    Partition by partition, each in offset order; the schema is that of Spark's Kafka source. Each
    stretch of offsets is fetched once, however many slices share it.

    Raises:
        EnvironmentMismatchError: this worker's Python lacks a package.
        LogError: Kafka refuses, lost records, or does not answer; the subclass says which.
    """
    with needed_packages():
        from spark_coop_source import slice_reader  # noqa: PLC0415
    yield from slice_reader.batches(partition)
