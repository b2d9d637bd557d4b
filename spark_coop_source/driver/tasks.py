"""Makes Spark's input partitions from the coordinator's tasks, in the driver. Decides nothing."""

import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from math import ceil, inf

from coordinator.plan.failing_keys import by_partition, of_slices
from coordinator.plan.packing import Task
from coordinator.plan.sharing import SharedStretches, shared_stretches
from coordinator.progress.acknowledgement import strips_of
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.options import part_of
from spark_coop_source.arrow_output.schema import ACKNOWLEDGEMENT
from spark_coop_source.fetch.read_options import ReadOptions
from spark_coop_source.options.declarations import SourceOptions
from spark_coop_source.task.partition import Sharing, SlicePartition, TaskEnding
from spark_coop_source.telemetry.report import ReportTo


def input_partitions(
    options: SourceOptions,
    tasks: Iterable[Task],
    report: ReportTo | None = None,
    *,
    deadline_ms: int | None = None,
    ending: TaskEnding | None = None,
    beside_ms: float = 0.0,
    end: StreamOffset | None = None,
    singly: Callable[[Task], bool] = lambda task: False,
) -> list[SlicePartition]:
    """The input partitions of a batch. Tasks that need the same stretch may fetch it together.

    `ending`: of a batch of a group. `beside_ms`: the part of the time budget that they leave for
    the rest of the batch. `end`: of a batch of a group, whose rows users may acknowledge. Tasks that make the column
    for this fetch alone: shared blocks have no texts. Strips are of one task: a strip of two tasks would have a gap at
    each record of the other task. `singly`: whether a task takes records one by one (rule: struck-lane-apart).
    """
    packed = tuple(tasks)
    acknowledged = end if ACKNOWLEDGEMENT in options.columns else None
    share_ms = _share_ms(options, len(packed), beside_ms)
    failing = by_partition(ending.failing) if ending else {}
    shared = shared_stretches(packed) if options.cache_bytes and not acknowledged else {}
    batch, read = uuid.uuid4().hex, part_of(options, ReadOptions)
    return [
        SlicePartition(
            slices=of_task,
            kafka=options.kafka,
            columns=options.columns,
            fail_on_data_loss=options.fail_on_data_loss,
            filter=options.filter,
            report=report,
            singly=singly(of_task),
            sharing=_sharing(of_task, shared, batch, options.cache_bytes),
            strips=strips_of(acknowledged, of_task) if acknowledged else None,
            deadline_ms=deadline_ms,
            ending=replace(_timed(ending, share_ms), task=number, failing=of_slices(failing, of_task))
            if ending
            else None,
            **read,
        )
        for number, of_task in enumerate(packed)
    ]


def _timed(ending: TaskEnding, share_ms: float) -> TaskEnding:
    """A task that may not end by the clock waits no longer for further attempts than one that may."""
    return replace(ending, share_ms=share_ms if ending.by_time else inf, retries_ms=share_ms)


def _share_ms(options: SourceOptions, tasks: int, beside_ms: float) -> float:
    """The time of each task. Tasks that wait for a slot share the budget."""
    if not options.batch_budget_ms:
        return inf
    return (options.batch_budget_ms - beside_ms) / max(1, ceil(tasks / options.slots))


def deadline(options: SourceOptions) -> int | None:
    """The latest start of a task of a batch that is authorised now, in ms since 1970 (rule: task-deadline).

    The longest batch plus one session, because clocks may differ. None without a group: no other member can own its
    ranges.
    """
    if options.standalone:
        return None
    return time.time_ns() // 1_000_000 + options.longest_ms + options.session_ms


def _sharing(task: Iterable[Slice], shared: SharedStretches, batch: str, most_bytes: int) -> Sharing | None:
    of_task = {s.topic_partition for s in task}
    stretches = {tp: shared[tp] for tp in sorted(of_task) if tp in shared}
    return Sharing(batch, most_bytes, stretches) if stretches else None
