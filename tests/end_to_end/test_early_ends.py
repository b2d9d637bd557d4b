"""Tasks end their slices when their share of the time budget is used: any cost inside the read, in each batch."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from spark_coop_source import map_batches, map_keys
from spark_coop_source.function.rows import KeyRecords
from streams import DEADLINE_S, Stream, keyed, sent, stable, state
from topics import Record
from verdict import judge, require_good

SCHEMA = "key binary, value binary, offset long, partition int"
BUDGET_MS, SLOTS, RECORD_MS = 1_000, 2, 10
MOST_ROWS = 2 * SLOTS * BUDGET_MS / RECORD_MS  # however slow the machine is: a budget, and as much for the last calls


def functions() -> tuple[Callable[[bytes | None, pa.RecordBatch], pa.RecordBatch], Callable[[Any], Iterator[Any]]]:
    """Ten milliseconds for each record, of one key and of all. Local, so that workers need not import them."""

    def on_each(key: bytes | None, batch: KeyRecords) -> pa.RecordBatch:
        time.sleep(RECORD_MS / 1_000 * len(batch))
        return batch.arrow.select(["key", "value", "offset", "partition"])

    def on_all(batches: Any) -> Iterator[Any]:
        for batch in batches:
            yield on_each(None, KeyRecords(batch))

    return on_each, on_all


ON_EACH, ON_ALL = functions()
FORMS: list[Mapping[str, str]] = [
    map_keys(ON_EACH, SCHEMA),
    map_keys(ON_EACH, SCHEMA, concurrency=2),
    map_batches(ON_ALL, SCHEMA),
]


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(FORMS[0], id="key by key"),
        pytest.param(FORMS[1], id="two keys at once", marks=pytest.mark.long),
        pytest.param(FORMS[2], id="all batches"),
    ],
)
def test_batches_keep_the_budget_from_the_first_one_on(stream: Stream, form: Mapping[str, str], kafka: Any) -> None:
    """1,000 records of 10 ms each: five seconds of work for two slots, in batches of one second."""
    records = keyed(1_000)
    kafka.produce(stream.options["subscribe"], records)
    query = stream.start({"availableNow": True}, **form, batchTimeBudget=f"{BUDGET_MS}ms", slots=str(SLOTS))
    try:
        assert query.awaitTermination(DEADLINE_S)
        rows = [p.numInputRows for p in query.recentProgress if p.numInputRows]
    finally:
        query.stop()
    assert max(rows) <= MOST_ROWS * (2 if "functionConcurrency" in form else 1)
    assert stream.sink.offsets == [*range(1_000)], "each record once"
    require_good(judge(sent(records), stream.sink.received))
    assert stable(stream) == {1_000}


def test_a_rare_record_costs_its_own_time_and_no_more(stream: Stream, kafka: Any) -> None:
    """One record takes three seconds; the batch with it lasts no longer, and no other key waits for it twice."""

    def work(key: bytes | None, batch: KeyRecords) -> pa.RecordBatch:
        time.sleep(3 * batch.arrow.column("value").to_pylist().count(b"dear"))
        return batch.arrow.select(["key", "value", "offset", "partition"])

    records = [*keyed(300), Record(b"dear", b"key-7"), *keyed(300, first=301)]
    kafka.produce(stream.options["subscribe"], records)
    form = map_keys(work, SCHEMA)
    stream.run(**form, batchTimeBudget="1s")
    assert stream.sink.offsets == [*range(601)]
    require_good(judge(sent(records), stream.sink.received))


def test_a_query_that_is_started_again_goes_on_at_the_true_ends(stream: Stream, kafka: Any) -> None:
    """A stop in the middle of a batch is no strike, and each batch has the same records again if Spark repeats it."""
    records = keyed(400)
    kafka.produce(stream.options["subscribe"], records)
    form = {**map_keys(ON_EACH, SCHEMA), "batchTimeBudget": "500ms", "slots": "2"}
    for batches in (1, 2, 3):
        with stream.running(lambda: len(stream.sink.batches) >= batches, f"{batches} batches", **form):  # noqa: B023
            pass
    stream.run(**form)
    times = Counter((d.batch, d.offset) for d in stream.sink.received)
    assert sorted(offset for _, offset in times) == [*range(400)], "each record is of one batch"
    for batch in stream.sink.batches:  # one that Spark has run again had the same records again
        assert len({n for (of, _), n in times.items() if of == batch}) <= 1
    first = {(d.batch, d.offset): d for d in reversed(stream.sink.received)}
    require_good(judge(sent(records), first.values()))
    assert set(state(stream).stable.values()) == {400}


def test_a_batch_that_a_sink_runs_twice_has_the_same_records_both_times(stream: Stream, kafka: Any) -> None:
    """The second action reads to the ends of the first, which lie between keys of a lane that its host shares."""
    records = keyed(600)
    kafka.produce(stream.options["subscribe"], records)
    twice: list[tuple[list[int], list[int]]] = []

    def sink(rows: DataFrame, batch_id: int) -> None:
        first, again = ([row.offset for row in rows.select("offset").collect()] for _ in range(2))
        twice.append((sorted(first), sorted(again)))

    form = map_keys(ON_EACH, SCHEMA)
    options = {**stream.options, **form, "batchTimeBudget": "1s", "slots": str(SLOTS), "lanes": str(SLOTS)}
    rows = stream.spark.readStream.format("coop-kafka").options(**options).load()
    writer = rows.writeStream.foreachBatch(sink).option("checkpointLocation", str(stream.checkpoint))
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(DEADLINE_S)
    finally:
        query.stop()
    assert len(twice) > 2, "batches end early"
    assert [again for _, again in twice] == [first for first, _ in twice]
    assert sorted(offset for first, _ in twice for offset in first) == [*range(600)]
