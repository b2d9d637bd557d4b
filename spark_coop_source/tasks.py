"""From slices to Spark tasks: which slices share an input partition. Driver side; owns no rule."""

from collections.abc import Iterable

from coordinator.packing import pack
from coordinator.slices import Slice
from spark_coop_source.options import SourceOptions
from spark_coop_source.read import SlicePartition


def input_partitions(options: SourceOptions, slices: Iterable[Slice]) -> list[SlicePartition]:
    """The input partitions of a batch: as many as slots, or as `minPartitions`, `maxRecordsPerPartition` ask for."""
    tasks = max(options.slots, options.min_partitions or 0)
    packed = pack(tuple(slices), tasks=tasks, max_weight=options.max_records_per_partition)
    return [
        SlicePartition(
            slices=of_task,
            kafka=options.kafka,
            include_headers=options.include_headers,
            poll_timeout_ms=options.poll_timeout_ms,
            fail_on_data_loss=options.fail_on_data_loss,
        )
        for of_task in packed
    ]
