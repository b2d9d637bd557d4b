"""The audit of a sink that Spark can read: a table, a file in any format, or a result of your own query.

    from spark_coop_source import audit

    result = audit(spark.table("orders"), {"group": ..., "redisUrl": ..., "kafka.bootstrap.servers": ...}, "orders")
    assert result.good, result.partitions

`coop-kafka audit` does the same for a folder of Parquet files, without Spark. See `coordinator.tools.audit`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from coordinator.errors import InvalidOptionError, MissingOptionError, SinkError
from coordinator.kafka.log import KafkaLog
from coordinator.redis.client import RedisClient
from coordinator.tools.audit.audit import AuditRequest, Kafka
from coordinator.tools.audit.audit import audit as audited
from coordinator.tools.audit.columns import UNKNOWN, SinkColumns
from coordinator.tools.audit.report import Audit
from coordinator.tools.audit.sink_rows import Names, SinkPart, columns_of, numbers_of
from coordinator.tools.operations.group_look import look_at
from coordinator.tools.operations.reset_plan import chosen
from coordinator.values.options import key_of
from spark_coop_source.key_columns import key_columns
from spark_coop_source.options.kafka_options import PREFIX, kafka_arguments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROLES = ("partition", "offset", "topic", "batch", "query")
_RETRIES, _RETRY_INTERVAL_MS = 3, 1_000


def audit(
    sink: "DataFrame | Callable[[], DataFrame]",
    options: Mapping[str, str],
    topic: str,
    *,
    columns: Mapping[str, str] | None = None,
    order: Sequence[str] = (),
    from_offset: int = 0,
    dead_letters: str | None = None,
) -> Audit:
    """Compare the rows of `sink` with Kafka: every record that the group has done must be in it once, and in key order.

    Runs in the driver: Spark sends it two to four numbers for each row, so `spark.driver.maxResultSize` must allow
    about 40 bytes for each. A result with faults is no error: look at `good`, and at the `faults` of `partitions`.

    Args:
        sink: One row for each record, with its `partition` and `offset`; with `batch`, the id of the micro-batch, the
            order of batches is checked too. With several topics it needs `topic`; with batches of several queries,
            `query`. While members work, pass a function that returns it: Spark lists files when a DataFrame is made,
            and rows that come later would be missing.
        options: `group`, `redisUrl` and the options `kafka.*` of the query. Other options are ignored. By default
            only records of committed transactions count: `kafka.isolation.level` changes that.
        topic: `orders`, or `orders:0,1` for some partitions.
        columns: The sink's own names of these columns, such as `{"offset": "kafka_offset"}`.
        order: Columns that order the rows within a batch. Without them, the order within a batch is not checked.
        from_offset: The first offset to look at, for a group that began there.
        dead_letters: The dead-letter topic. None: the one that members of the group write to now.

    Raises:
        InvalidOptionError: `columns` names another column than these.
        MissingOptionError: `group`, `redisUrl` or `kafka.bootstrap.servers` is absent.
        SinkError: the sink lacks a column, or a column holds other values than whole numbers.
        StoreError, LogError: Redis or Kafka refuse or do not answer.
    """
    texts = {key_of(name): text for name, text in options.items()}
    for name in ("group", "redisUrl", f"{PREFIX}bootstrap.servers"):
        if not texts.get(key_of(name)):
            raise MissingOptionError(f"the option {name} of the audit is missing", f"pass the {name} of the query")
    settings = {name: text for name, text in texts.items() if name.startswith(PREFIX)}
    arguments = {"isolation_level": "read_committed", **kafka_arguments(settings)}
    wanted = AuditRequest(chosen([topic]), from_offset, dead_letters)
    with closing(RedisClient(texts[key_of("redisUrl")])) as client:
        positions = look_at(client, texts["group"], batches=0)
    with closing(KafkaLog(arguments, retries=_RETRIES, retry_interval_ms=_RETRY_INTERVAL_MS)) as log:
        read = _FrameSink(sink, _names(columns or {}), (*(columns or {}).values(), *order), tuple(order))
        return audited(positions, "a DataFrame", read, Kafka(arguments, log, key_columns), wanted)


def _names(columns: Mapping[str, str]) -> Mapping[str, str]:
    if unknown := columns.keys() - set(_ROLES):
        raise InvalidOptionError(f"{min(unknown)!r} is not a column of an audit", f"use some of {', '.join(_ROLES)}")
    return {role: columns.get(role, role) for role in _ROLES}


@dataclass(frozen=True, slots=True)
class _FrameSink:
    made: "DataFrame | Callable[[], DataFrame]"
    names: Mapping[str, str]  # of columns, by role
    chosen: tuple[str, ...]  # columns that the caller names
    order: tuple[str, ...]

    def columns(self, topic: str) -> Mapping[int, SinkColumns]:
        frame = self.made() if callable(self.made) else self.made
        there = set(frame.columns)
        needed = [self.names["partition"], self.names["offset"], *self.chosen]
        if missing := [name for name in needed if name not in there]:
            raise SinkError(
                f"the sink has no column {missing[0]!r}; it has {', '.join(sorted(there))}",
                "write Kafka's partition and offset into the sink, or name its columns in `columns`",
            )
        if self.names["topic"] in there:
            frame = frame.where(frame[self.names["topic"]] == topic)
        wanted = [name for role, name in self.names.items() if name in there and role != "topic"]
        table = frame.select(*dict.fromkeys((*wanted, *self.order))).toArrow()
        found = self._of(table.sort_by([(name, "ascending") for name in self.order]) if self.order else table)
        return found if self.order else {number: _each_alone(of) for number, of in found.items()}

    def _of(self, table: pa.Table) -> Mapping[int, SinkColumns]:
        def column(role: str, absent: int | None = None) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
            name = self.names[role]
            if absent is not None and name not in table.column_names:
                return np.full(len(table), absent, np.int64)
            return numbers_of(table.column(name), f"column {name!r}", absent)

        names, query = Names({}), self.names["query"]
        queries = names.numbers(table.column(query)) if query in table.column_names else np.zeros(len(table), np.int64)
        part = SinkPart(column("partition"), column("offset"), column("batch", UNKNOWN), queries)
        return columns_of([part], [*names.found] or [""])


def _each_alone(of: SinkColumns) -> SinkColumns:
    """The same rows, each in a file of its own: Spark collects the rows of a batch in any order."""
    return replace(of, files=np.arange(len(of)), tasks=np.full(len(of), UNKNOWN, np.int64))
