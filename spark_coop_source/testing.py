"""For the tests of a user's job: its function on records, without Kafka, Redis and Spark; or servers for the whole job.

    from spark_coop_source.testing import run_records

    outcome = run_records(charged, [{"key": b"a", "value": b"12"}], "key binary, amount double", on_error=on_error)
    assert [row["amount"] for row in outcome.rows] == [12.0]

It runs the code of a task, with the options that `map_records` and `map_keys` make. Only pauses are left out.
`servers` starts a Kafka broker and a Valkey; docs/functions.md has an example.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from math import inf
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from coordinator.progress.slices import Slice
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.arrow_output.schema import EVERY
from spark_coop_source.arrow_output.schema import schema as row_schema
from spark_coop_source.function.call import FunctionCall
from spark_coop_source.function.on_error import OnError
from spark_coop_source.function.runner import run_call
from spark_coop_source.function.slice_batches import tables
from spark_coop_source.function.user_function import UserFunction, is_async
from spark_coop_source.functions import map_keys, map_records
from spark_coop_source.options.declarations import OPTION_OF
from spark_coop_source.servers.servers import Servers, servers
from spark_coop_source.task.ending import TaskEnds

__all__ = ["FailedAttempt", "Outcome", "Servers", "run_keys", "run_records", "servers"]


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A record without rows: its offset, the class and text of its last error, and the number of attempts on it."""

    offset: int
    error: str
    message: str
    attempts: int


@dataclass(slots=True)
class Outcome:
    """What became of the records. Offsets count from 0, in each partition, if the records do not name their own."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    """The rows that Spark would get, in their order: those of a key are in the order of its records."""

    dead_letters: list[FailedAttempt] = field(default_factory=list)
    parked: list[FailedAttempt] = field(default_factory=list)
    """Records at which a key waits. Nothing behind them is in `rows`."""

    skipped: int = 0
    calls: Counter[int] = field(default_factory=Counter)
    """By offset: how often the function got the record. More than once after a failure."""

    def send(self, row: pa.RecordBatch, error: str, message: str, attempts: int) -> None:
        """Take a dead letter, as the producer of a task does."""
        self.dead_letters.append(FailedAttempt(row.column("offset")[0].as_py(), error, message, attempts))


def run_records(
    function: Callable[..., Any],
    records: Iterable[Mapping[str, Any]],
    schema: StructType | str,
    *,
    concurrency: int = 1,
    timeout: str | int | None = None,
    on_error: OnError | None = None,
) -> Outcome:
    """What `map_records` with these arguments makes of some records.

    `records` come in offset order. Each has `key` and `value`, perhaps other columns of Kafka's too. A DDL schema needs
    a Spark session, a StructType does not.

    Raises `FunctionFailedError` where the query would fail, and the errors of `map_records`.
    """
    options = map_records(function, schema, concurrency=concurrency, timeout=timeout, on_error=on_error)
    return _run(function, records, schema, options)


def run_keys(
    function: Callable[..., Any],
    records: Iterable[Mapping[str, Any]],
    schema: StructType | str,
    *,
    concurrency: int = 1,
    timeout: str | int | None = None,
    on_error: OnError | None = None,
) -> Outcome:
    """What `map_keys` with these arguments makes of some records; see `run_records`."""
    options = map_keys(function, schema, concurrency=concurrency, timeout=timeout, on_error=on_error)
    return _run(function, records, schema, options)


def _run(
    function: Callable[..., Any],
    records: Iterable[Mapping[str, Any]],
    schema: StructType | str,
    options: Mapping[str, str],
) -> Outcome:
    given = {
        name: OPTION_OF[name].parse(options[OPTION_OF[name].name])
        for name in OPTION_OF
        if OPTION_OF[name].name in options
    }
    output = schema if isinstance(schema, StructType) else cast(StructType, StructType.fromDDL(schema))
    policy = given.get("function_on_error")
    at_once = policy and replace(policy, backoff_ms=0, backoff_max_ms=0)
    form = UserFunction("", output, given["takes"], given["concurrency"], given.get("timeout_ms"), at_once)
    outcome, ends = Outcome(), TaskEnds(inf, lambda: 0.0)
    batches = _batches(records)
    slices = [_whole(batch) for batch in batches]
    ends.begin({s.topic_partition: s.offsets.start for s in slices})
    call = FunctionCall(
        _counted(function, given["takes"], outcome.calls), to_arrow_schema(output, timezone="UTC"), form
    )
    for made in run_call(call, form, iter(batches), tables(slices), ending=ends, dead_letters=outcome):
        outcome.rows += made.to_pylist()
    outcome.skipped = ends.skipped
    outcome.parked = [FailedAttempt(r.offset, r.error, r.message, r.attempts) for r in ends.failures.failing]
    return outcome


def _batches(records: Iterable[Mapping[str, Any]]) -> list[pa.RecordBatch]:
    """The records of each partition, with all of Kafka's columns."""
    partitions: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for record in records:
        usual = {"value": None, "topic": "topic", "partition": 0, "timestamp": 0, "timestampType": 0}
        full = usual | dict(record)
        of_one = partitions.setdefault((full["topic"], full["partition"]), [])
        of_one.append({"offset": of_one[-1]["offset"] + 1 if of_one else 0} | full)
    schema = to_arrow_schema(row_schema(EVERY), timezone="UTC")
    return [pa.RecordBatch.from_pylist(of_one, schema=schema) for of_one in partitions.values()]


def _whole(batch: pa.RecordBatch) -> Slice:
    topic, partition, offsets = (batch.column(name) for name in ("topic", "partition", "offset"))
    tp = TopicPartition(topic[0].as_py(), partition[0].as_py())
    return Slice(tp, WHOLE, OffsetRange(offsets[0].as_py(), offsets[-1].as_py() + 1))


def _counted(function: Callable[..., Any], takes: str, calls: Counter[int]) -> Callable[..., Any]:
    def count(arguments: tuple[Any, ...]) -> None:
        calls.update(record.offset for record in ([arguments[0]] if takes == "records" else arguments[1]))

    async def counted_async(*arguments: Any) -> Any:
        count(arguments)
        return await cast(Awaitable[Any], function(*arguments))

    def counted(*arguments: Any) -> Any:
        count(arguments)
        return function(*arguments)

    return wraps(function)(counted_async if is_async(function) else counted)
