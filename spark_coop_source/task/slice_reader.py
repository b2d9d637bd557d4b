"""Reads the slices of one input partition, one topic-partition after another, and reports their costs.

Combines `readings`, the meter and the user's function. Runs in executor workers.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import chain, groupby

import pyarrow as pa

from coordinator.progress.slices import merged
from coordinator.subscription import TopicPartition
from spark_coop_source.arrow_output.record_batch import regrouped
from spark_coop_source.function.runner import SILENT, run
from spark_coop_source.function.slice_batches import tables
from spark_coop_source.function.user_function import UserFunction
from spark_coop_source.task.partition import SlicePartition
from spark_coop_source.task.readings import Readings
from spark_coop_source.telemetry.meter import MEASURED, SliceMeter
from spark_coop_source.telemetry.report import ReportTo
from spark_coop_source.telemetry.sender import ReportSender


def batches(task: SlicePartition, function: UserFunction | None) -> Iterator[pa.RecordBatch]:
    """The Arrow batches of `read_slices`, which describes their content."""
    if task.report is None:
        return regrouped(_made(task, function, None))
    return _metered(task, task.report, function)


def _metered(task: SlicePartition, report: ReportTo, function: UserFunction | None) -> Iterator[pa.RecordBatch]:
    """The same batches, with a report of the cost of each slice."""
    with ReportSender(report) as sender:
        meter = SliceMeter(tables(task.slices), sender.send, with_function=function is not None, trial=report.trial)
        made = _made(task, function, meter)
        if function is None:
            made = (batch.select(list(task.columns)) for batch in made)  # the meter needed more columns
        for batch in regrouped(made):
            meter.hands_on()
            yield batch


def _made(task: SlicePartition, function: UserFunction | None, meter: SliceMeter | None) -> Iterator[pa.RecordBatch]:
    """The records, or the function's output. Small batches are joined for a function of batches."""
    read = _partitions(task, _hashed(task, function))
    if function is not None and not function.per_key:
        read = ((tp, regrouped(batches)) for tp, batches in read)
    if meter is not None:
        read = ((tp, meter.reading(tp, batches)) for tp, batches in read)
    every = chain.from_iterable(batches for _, batches in read)
    if function is None:
        return every
    trial = task.report is not None and task.report.trial
    return run(function, every, tables(task.slices), meter or SILENT, by_record=trial)


def _hashed(task: SlicePartition, function: UserFunction | None) -> Collection[TopicPartition] | None:
    """The partitions whose records are cut by hash for the function. None without a function."""
    if function is None:
        return None
    slices = Counter(s.topic_partition for s in task.slices)
    return [tp for tp, count in slices.items() if function.per_key or count > 1]


def _partitions(
    task: SlicePartition, hashed: Collection[TopicPartition] | None
) -> Iterator[tuple[TopicPartition, Iterator[pa.RecordBatch]]]:
    """The records of one partition after another."""
    if not task.slices:
        return
    slices = {tp: merged(group) for tp, group in groupby(sorted(task.slices), lambda s: s.topic_partition)}
    columns = task.columns if task.report is None else (*task.columns, *MEASURED)
    with Readings(task, columns, slices, hashed) as readings:
        yield from readings.each(slices)
