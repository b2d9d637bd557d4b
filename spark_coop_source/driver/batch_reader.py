"""`spark.read`: reads fixed offset ranges. Cuts them in lanes by key hash, and packs the lanes into tasks.

Runs in Spark's short-lived planning process on the driver host; executors get a `TaskReader` instead. Joins
no group, commits nothing, needs no Redis: a batch is one plan from fixed positions.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from time import monotonic, sleep
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from coordinator.errors import DataLossError
from coordinator.kafka.log import KafkaLog
from coordinator.plan.joined_topics import must_be_equal
from coordinator.plan.packing import pack
from coordinator.plan.planning import OwnedRange, plan
from coordinator.progress.data_loss import LOW_MS
from coordinator.progress.slices import Slice
from coordinator.values.offset_spec import AtTimestamp, NoMatch
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import Assigned, Bounds, OffsetByPartition, Subscription, TopicPartition
from spark_coop_source.driver.pushed_filters import NOTHING, Pushed, pushed
from spark_coop_source.driver.tasks import input_partitions
from spark_coop_source.driver.wiring import check_dead_letters, cutting, kafka_log
from spark_coop_source.environment import interpreter_notices
from spark_coop_source.function.user_function import UserFunction
from spark_coop_source.options.declarations import SourceOptions
from spark_coop_source.task.read import TaskReader

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

LOOK_S = 1.0
"""The time between two looks at a log that ends before a wanted offset."""

_EPOCH = "-"  # the lane epoch of a slice that no other member can take


class CoopKafkaBatchReader(DataSourceReader):
    """The reader of one `spark.read`. Only `partitions` connects to Kafka."""

    def __init__(self, options: SourceOptions, function: UserFunction | None = None) -> None:
        self._options = options
        self._function = function
        self._pushed = NOTHING

    def partitions(self) -> list[InputPartition]:
        """The tasks of the batch; none if there is nothing to read.

        Raises `LogError`s: an unknown topic, offsets outside the log, no broker.
        """
        o = self._options
        for notice in (*o.notices, *interpreter_notices()):
            log.warning("%s", notice)
        check_dead_letters(o)
        with closing(kafka_log(o)) as opened:
            cut = cutting(o)
            tasks = pack(
                tuple(slices(o, opened, self._pushed)),
                tasks=cut.tasks,
                max_weight=cut.max_records_per_partition,
                joined=cut.joined,
            )
            return [*input_partitions(o, tasks)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """See `TaskReader.read`, which runs on executors."""
        return TaskReader(self._function).read(partition)

    def __reduce__(self) -> tuple[type[TaskReader], tuple[UserFunction | None]]:
        return TaskReader, (self._function,)  # Spark pickles a reader for executors only


class FilteringBatchReader(CoopKafkaBatchReader):
    """The same reader with the option `pushFilters`: Spark passes its filters before it asks for the tasks.

    A class of its own: Spark refuses a reader that has `pushFilters` unless spark.sql.python.filterPushdown.enabled.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that bound the plan; returns those that Spark has to evaluate."""
        self._pushed, rest = pushed(filters)
        if self._pushed.keys is not None:
            allow = self._options.filter.allow
            keys = self._pushed.keys if allow is None else self._pushed.keys & allow
            self._options = replace(self._options, filter=replace(self._options.filter, allow=keys))
        return rest


def slices(options: SourceOptions, opened: KafkaLog, pushed: Pushed = NOTHING) -> Iterator[Slice]:
    """The slices of the batch: from the starting to the ending offsets within `pushed`, cut as the options ask.

    A partition with an empty or inverted range has none, as in Spark's Kafka source.
    """
    hashes = _hashes(options.subscription, opened)
    must_be_equal(Counter(tp.topic for tp in hashes if tp.topic in options.copartition))
    starts, ends = _offsets(options, opened, tuple(hashes))
    hashes = {tp: ranges for tp, ranges in hashes.items() if pushed.reads(tp.partition)}
    if pushed.since_ms:
        since = opened.resolve(AtTimestamp(pushed.since_ms, NoMatch.LATEST), tuple(hashes))
        starts = {tp: max(starts[tp], offset) for tp, offset in since.items()}
    starts = {tp: max(starts[tp], pushed.offsets.least) for tp in hashes}
    ends = {tp: min(ends[tp], pushed.offsets.most + 1) for tp in hashes}
    work = {tp: tuple(OwnedRange(h, starts[tp], _EPOCH) for h in ranges) for tp, ranges in hashes.items()}
    for tp, lanes in plan(work, ends, cutting(options)).items():
        yield from (Slice(tp, lane.hashes, offsets) for lane in lanes for offsets in lane.offsets)


def _hashes(subscription: Subscription, opened: KafkaLog) -> dict[TopicPartition, tuple[HashRange, ...]]:
    topics = opened.topics(subscription).values()
    if isinstance(subscription, Assigned):
        return dict(subscription.partitions)
    return {TopicPartition(topic.name, partition): (WHOLE,) for topic in topics for partition in topic.partitions}


def _offsets(
    options: SourceOptions, opened: KafkaLog, partitions: tuple[TopicPartition, ...]
) -> tuple[OffsetByPartition, OffsetByPartition]:
    """First and last + 1 offset of each partition. With `failOnDataLoss` the log has already checked them."""
    starts = opened.resolve(options.starting, partitions)
    ends = opened.resolve(options.ending, partitions)
    if options.fail_on_data_loss:
        return starts, ends
    bounds = _bounds(opened, {tp: max(starts[tp], ends[tp]) for tp in partitions})
    for tp in partitions:
        _log_losses(tp, starts[tp], ends[tp], bounds[tp])
    return (
        {tp: max(start, bounds[tp].beginning) for tp, start in starts.items()},
        {tp: min(end, bounds[tp].end) for tp, end in ends.items()},
    )


def _bounds(opened: KafkaLog, wanted: OffsetByPartition) -> dict[TopicPartition, Bounds]:
    """The logs up to their high watermarks: records of open transactions are not lost.

    A log that ends before a wanted offset is looked at again for some seconds; see `LOW_MS`.
    """
    began = monotonic()
    while True:
        marks = opened.high_watermarks(wanted)
        if all(mark >= wanted[tp] for tp, mark in marks.items()) or monotonic() - began >= LOW_MS / 1000:
            return {tp: b._replace(end=marks[tp]) for tp, b in opened.bounds(wanted).items()}
        sleep(LOOK_S)


def _log_losses(tp: TopicPartition, start: int, end: int, bounds: Bounds) -> None:
    # requested      |====================|
    # log                 |=========|
    # lost           |====|         |=====|
    for lost, until in ((start, min(end, bounds.beginning)), (max(start, bounds.end), end)):
        if lost < until:
            log.warning("%s: %s: offsets %s are not in the log", DataLossError.name, tp, OffsetRange(lost, until))
