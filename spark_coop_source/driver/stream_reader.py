"""Spark's streaming calls, translated to the coordinator's. Contains no rule.

Spark's order of calls for one batch, and the coordinator's action:

    initialOffset()              a constant; writes first positions where there are none
    latestOffset(start, limit)   start is sink-complete: commit it, plan the next batch
        -> Spark writes the answer to its WAL
    partitions(start, end)       authorise `end`, pack its slices into input partitions
    read(partition)              on executors, which get a `TaskReader` instead
    stop()                       leave

Runs in the reader process that Spark starts beside the driver (`python_streaming_source_runner`), one for each
`load()`. Spark also constructs readers that never run. So the reader connects, and imports the clients of Kafka and
Redis, at its first call.
"""

import gc
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from coordinator.member.limits import Limits
from coordinator.member.progress_report import lane_progress
from coordinator.progress.stream_offset import StreamOffset
from spark_coop_source.driver.tasks import deadline, input_partitions
from spark_coop_source.environment import errors_in_one_line, interpreter_notices, needed_packages
from spark_coop_source.function.user_function import UserFunction
from spark_coop_source.options.declarations import SourceOptions
from spark_coop_source.options.group_rules import refuse_run_of_standby
from spark_coop_source.task.partition import SlicePartition
from spark_coop_source.task.read import TaskReader

if TYPE_CHECKING:
    import pyarrow as pa

    from spark_coop_source.driver.reader_process import StreamSession
    from spark_coop_source.driver.redundant_session import RedundantSession

log = logging.getLogger(__name__)

NO_LIMIT = 2**63 - 1
"""Rows of a batch where no option bounds them."""

GARBAGE = 100_000
"""New objects between two garbage collections. A plan of 10,000 lanes makes fewer, and no cycles.

Python's own thresholds cost a third of a trigger.
"""


class CoopKafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One streaming query's reader."""

    def __init__(self, options: SourceOptions, function: UserFunction | None = None) -> None:
        self._options = options
        self._function = function
        self._session: StreamSession | RedundantSession | None = None
        self._planned: tuple[dict[str, Any], StreamOffset] | None = None

    @errors_in_one_line()
    def initialOffset(self) -> dict[str, Any]:
        """The start of a new query: a constant for a group, the resolved offsets in standalone mode."""
        return self._open().initial().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit that the options name. Both bounds apply, whichever of them Spark passes back.

        Never `ReadAllAvailable`: Spark passes that for `Trigger.Once` alone, whatever this method returns.
        """
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadMaxRows(NO_LIMIT)

    @errors_in_one_line()
    def prepareForTriggerAvailableNow(self) -> None:
        """AvailableNow: this run ends at the current log ends."""
        if self._options.standby:
            refuse_run_of_standby("Trigger.AvailableNow")
        self._open().set_targets()

    @errors_in_one_line()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch, or `start` itself when there is nothing to do."""
        end = self._open().next_offset(self._parsed(start), self._limits(limit))
        if end is None:
            return start
        self._planned = end.to_json(), end
        return self._planned[0]

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The log ends at the last look, in the form of Spark's Kafka source; lag, lanes and filter under `#`."""
        if self._session is None:
            return None
        query = self._session.query
        ends = query.log_ends()
        report: dict[str, Any] = {}
        for tp, end in sorted(ends.items()):
            report.setdefault(tp.topic, {})[str(tp.partition)] = end
        behind = query.behind_latest(self._planned[1]) if self._planned else {}
        failing = query.failing if self._options.function_on_error else {}
        state = {**behind, **lane_progress(query.lanes), **failing}
        if self._options.filter.digest:
            state["filteredRecords"] = query.filtered
        return report | ({"#": state} if state else {}) or None

    @errors_in_one_line()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[SlicePartition]:
        """The input partitions of the batch that ends at `end`; `start` is not needed (rule: self-contained-offset)."""
        session = self._open()
        tasks = session.tasks(self._parsed(end))
        report = session.report_to([s for task in tasks for s in task])
        return input_partitions(
            self._options,
            tasks,
            report,
            deadline_ms=deadline(self._options),
            ending=session.ending(tasks),
            singly=session.query.singly,
            beside_ms=session.query.beside_ms,
            end=self._parsed(end),
        )

    def read(self, partition: SlicePartition) -> "Iterator[pa.RecordBatch]":  # type: ignore[override]
        """See `TaskReader.read`, which runs on executors."""
        return TaskReader(self._function).read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: Spark calls it late, never for the last batch. `latestOffset` commits (rule: commit-before-plan)."""

    def stop(self) -> None:
        """Leave the group, and release the confirmed ranges."""
        if self._session:
            self._session.close()

    def _open(self) -> "StreamSession | RedundantSession":
        if self._session is None:
            with needed_packages():
                from spark_coop_source.driver import reader_process, redundant_session, wiring  # noqa: PLC0415

                gc.freeze()  # modules live as long as the process: no collection need visit them again
            wiring.check_dead_letters(self._options)
            if self._options.redundancy > 1:
                self._session = redundant_session.RedundantSession.of(self._options)
            else:
                made = reader_process.StandaloneSession if self._options.standalone else reader_process.GroupSession
                self._session = made(self._options)
            for notice in (*self._options.notices, *interpreter_notices()):
                log.warning("%s", notice)
            gc.set_threshold(GARBAGE, 10, 10)
        return self._session

    def _parsed(self, offset: dict[str, Any]) -> StreamOffset:
        """The value of an offset. It is mostly the last planned offset, which needs no parsing."""
        if self._planned and self._planned[0] == offset:
            return self._planned[1]
        return StreamOffset.from_json(offset)

    def _limits(self, limit: ReadLimit) -> Limits:
        if isinstance(limit, ReadAllAvailable):
            if self._options.standby:
                refuse_run_of_standby("Trigger.Once")
            return Limits(everything=True)
        o = self._options
        return Limits(o.max_offsets_per_trigger, o.min_offsets_per_trigger, o.max_trigger_delay_ms)

    def __reduce__(self) -> tuple[type[TaskReader], tuple[UserFunction | None]]:
        return TaskReader, (self._function,)  # Spark pickles a reader for executors only
