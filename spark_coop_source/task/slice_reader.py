"""Reads the slices of one input partition, one topic-partition after another; reports their costs and their ends.

    without a driver that listens    all slices to their planned ends
    with one                         the same, with reports of costs
    where the batch allows it        until the task's share of the time budget is used, or to the ends of an earlier
                                     attempt; the driver takes the ends before Spark sees the end of the task

Combines `readings`, `ending`, the meter and the user's function. Runs in executor workers.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from itertools import chain, groupby
from time import perf_counter

import pyarrow as pa

from coordinator.errors import TaskNotEndedError
from coordinator.progress.ends import Ends, slices_to
from coordinator.progress.failing import NO_FAILURES
from coordinator.progress.slices import Slice, merged
from coordinator.values.subscription import TopicPartition
from spark_coop_source.arrow_output.record_batch import regrouped
from spark_coop_source.dead_letters.dead_letters import DeadLetters
from spark_coop_source.fetch.patience import Patience
from spark_coop_source.function.runner import SILENT, Listener, run
from spark_coop_source.function.slice_batches import tables
from spark_coop_source.function.user_function import UserFunction
from spark_coop_source.task.ending import TaskEnds
from spark_coop_source.task.last_row import with_last_row
from spark_coop_source.task.partition import SlicePartition, TaskEnding
from spark_coop_source.task.readings import Readings
from spark_coop_source.task.reads import WorkPieces
from spark_coop_source.telemetry.link import TaskLink
from spark_coop_source.telemetry.meter import MEASURED, SliceMeter
from spark_coop_source.telemetry.report import ReportTo


def batches(task: SlicePartition, function: UserFunction | None) -> Iterator[pa.RecordBatch]:
    """The Arrow batches of `read_slices`, which describes their content."""
    if task.report is None:
        if task.ending and task.ending.required:
            raise TaskNotEndedError("a task could not begin: its driver takes no ends, and its batch requires them")
        return regrouped(_made(task, function, None, None, Counter(), Patience(task.kafka_max_outage_ms)))
    return _reported(task, task.report, function)


def _reported(task: SlicePartition, report: ReportTo, function: UserFunction | None) -> Iterator[pa.RecordBatch]:
    """The same batches. The driver gets the cost of each slice, and the ends of the task."""
    began, ending = perf_counter(), task.ending
    with TaskLink(report) as link:
        agreed: Ends | None = None
        if ending and not (link.connected or ending.required):
            ending = None  # without the driver, the task reads all of its slices
        if ending and ending.early:
            agreed = link.agreed(ending.batch, ending.task)
        if agreed is not None:
            # without the cache: its batches hold whole lanes, and these slices may hold some hashes of one
            task = replace(task, slices=slices_to(task.slices, agreed), sharing=None)
        ends = None
        if ending and ending.early and agreed is None:
            ends = _ends(ending, began)
        filtered = Counter[TopicPartition]()
        patience = Patience(0 if ends and ends.by_time else task.kafka_max_outage_ms)
        with_function = function is not None
        meter = SliceMeter(
            tables(task.slices),
            link.send,
            with_function=with_function,
            singly=task.singly,
            filtered=filtered,
            check=link.check,
        )
        made = _made(task, function, meter, ends, filtered, patience)
        if not with_function:
            made = (batch.select(list(task.columns)) for batch in made)  # the meter needed more columns
        calls = function is not None and (function.per_key or task.singly)  # else the meter knows of none
        with meter.alive() if calls else nullcontext():  # it ends before the task asks by the same link
            for batch in regrouped(made):
                meter.hands_on()
                link.check()
                yield batch
        if ending:
            meter.ended()
            failures = replace(ends.failures if ends else NO_FAILURES, kafka_away=patience.away)
            link.end(ending.batch, ending.task, ends.ends if ends else agreed or {}, failures)


def _ends(ending: TaskEnding, began: float) -> TaskEnds:
    def clock_ms() -> float:
        return (perf_counter() - began) * 1000

    return TaskEnds(ending.share_ms, clock_ms, ending.failing, ending.room, ending.retries_ms)


def _made(
    task: SlicePartition,
    function: UserFunction | None,
    meter: SliceMeter | None,
    ends: TaskEnds | None,
    filtered: Counter[TopicPartition],
    patience: Patience,
) -> Iterator[pa.RecordBatch]:
    """The records, or the function's output. Small batches are joined for a function of batches."""
    by_batch = function is not None and not function.per_key
    more = _hidden(task, function)
    read = _partitions(task, _hashed(task, function), ends, filtered, patience, by_batch=by_batch, more=more)
    if meter is not None:
        read = ((tp, meter.reading(tp, batches)) for tp, batches in read)
    every = chain.from_iterable(batches for _, batches in read)
    if function is None:
        return every
    return _worked(task, function, every, meter or SILENT, ends)


def _worked(
    task: SlicePartition,
    function: UserFunction,
    every: Iterator[pa.RecordBatch],
    listener: Listener,
    ends: TaskEnds | None,
) -> Iterator[pa.RecordBatch]:
    """The function's output. At its end all dead letters are in Kafka, so before the task ends."""
    policy = function.on_error
    letters = DeadLetters(policy.topic, task.kafka, policy.group) if policy and policy.topic else None
    with letters or nullcontext():
        yield from run(
            function,
            every,
            tables(task.slices),
            listener,
            by_record=task.singly,
            ending=ends,
            dead_letters=letters,
            hidden=_hidden(task, function),
        )


def _hidden(task: SlicePartition, function: UserFunction | None) -> tuple[str, ...]:
    """Columns that dead letters need, and the function shall not see."""
    needed = function is not None and function.on_error is not None and function.on_error.topic is not None
    return ("headers",) if needed and "headers" not in task.columns else ()


def _hashed(task: SlicePartition, function: UserFunction | None) -> Collection[TopicPartition] | None:
    """The partitions whose records are cut by hash for the function. None without a function."""
    if function is None:
        return None
    slices = Counter(s.topic_partition for s in task.slices)
    return [tp for tp, count in slices.items() if function.per_key or count > 1]


def _partitions(
    task: SlicePartition,
    hashed: Collection[TopicPartition] | None,
    ends: TaskEnds | None,
    filtered: Counter[TopicPartition],
    patience: Patience,
    *,
    by_batch: bool,
    more: Collection[str],
) -> Iterator[tuple[TopicPartition, Iterator[pa.RecordBatch]]]:
    """The records of one partition after another, each as far as the task may read. `more`: columns beside its own."""
    if not task.slices:
        return
    slices = {tp: merged(group) for tp, group in groupby(sorted(task.slices), lambda s: s.topic_partition)}
    columns = (*task.columns, *more, *(() if task.report is None else MEASURED))
    pieces = WorkPieces(ends.share_ms, ends.clock_ms) if ends and by_batch else None
    if ends:
        ends.begin({tp: _start(of_one) for tp, of_one in slices.items()})
    with Readings(task, columns, slices, hashed, filtered, patience) as readings:
        for tp, reads in readings.each(slices):
            sized = pieces.of(reads) if pieces else reads
            allowed = ends.reading(tp, sized) if ends else reads
            batches = with_last_row(allowed) if task.strips else (read.records for read in allowed)
            with closing(reads):  # a partition that ends early is fetched no further
                yield tp, regrouped(batches) if by_batch and pieces is None else batches


def _start(slices: Sequence[Slice]) -> int:
    return min(s.offsets.start for s in slices)
