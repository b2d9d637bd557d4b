"""Records on which the function fails, in streams and batches: tried again, then left out; others go on in order."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_coop_source import OnError, map_keys
from spark_coop_source.function.rows import KeyRecords
from streams import Stream
from topics import Kafka, Record
from written_records import consumed

SCHEMA = "key binary, value binary, offset long, partition int"
KEYS, COUNT = 60, 600
BAD, FLAKY = range(7, COUNT, 61), range(30, COUNT, 61)


def records(values: Mapping[int, bytes]) -> list[Record]:
    """Ten of each key; the value of a record is good, or as `values` says."""
    return [Record(values.get(number, b"good"), b"key-%d" % (number % KEYS)) for number in range(COUNT)]


MIXED = records({**dict.fromkeys(BAD, b"bad"), **dict.fromkeys(FLAKY, b"flaky")})


def shop(folder: Path) -> tuple[type[Exception], Callable[..., Any], Callable[..., Any]]:
    """An exception; a function that raises it for each bad record, and at two attempts on each flaky one; as coroutine.

    Local, so that they travel by value. Files count the attempts, since batches and tasks have processes of their own.
    """

    class ShopError(Exception):
        """Of the job."""

    def work(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
        for value, offset in zip(
            records.arrow.column("value").to_pylist(), records.arrow.column("offset").to_pylist(), strict=True
        ):
            attempts = folder / str(offset)
            failed = len(attempts.read_text()) if attempts.exists() else 0
            if value == b"bad" or (value == b"flaky" and failed < 2):
                if len(records) == 1:
                    attempts.write_text("." * (failed + 1))
                raise ShopError(f"no customer at {offset}")
        return records.arrow.select(["key", "value", "offset", "partition"])

    async def work_async(key: bytes | None, records: KeyRecords) -> pa.RecordBatch:
        if b"bad" in records.arrow.column("value").to_pylist():
            await asyncio.sleep(1_000)
        return work(key, records)

    return ShopError, work, work_async


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """For the counts of attempts."""
    made = tmp_path / "attempts"
    made.mkdir()
    return made


def attempts(folder: Path) -> dict[int, int]:
    """The failed attempts on single records, by offset."""
    return {int(file.name): len(file.read_text()) for file in folder.iterdir()}


def each_key_in_order(rows: Sequence[tuple[object, int]]) -> bool:
    keys = {key for key, _ in rows}
    return all(a < b for key in keys for a, b in pairwise(offset for k, offset in rows if k == key))


@pytest.mark.parametrize("form", ["one key at a time", "threads", "coroutines"])
def test_a_stream_tries_again_and_then_skips(stream: Stream, kafka: Kafka, folder: Path, form: str) -> None:
    """The coroutine hangs at a bad record, until its timeout."""
    kafka.produce(stream.options["subscribe"], MIXED)
    error, work, work_async = shop(folder)
    awaits = form == "coroutines"
    how = OnError(3, "20ms", "1s", then="skip", retry_on=[error, TimeoutError])
    stream.run(
        **map_keys(
            work_async if awaits else work,
            SCHEMA,
            concurrency=1 if form == "one key at a time" else 8,
            timeout="500ms" if awaits else None,
            on_error=how,
        )
    )
    assert stream.sink.offsets == [number for number in range(COUNT) if number not in BAD]
    assert each_key_in_order([(row.key, row.offset) for row in stream.sink.received])
    assert attempts(folder) == dict.fromkeys(FLAKY, 2) | ({} if awaits else dict.fromkeys(BAD, 3))


def test_an_attempt_that_does_not_fit_is_made_in_a_later_batch(stream: Stream, kafka: Kafka, folder: Path) -> None:
    """Its key waits there, with everything behind it, and all other keys go on in the first batch."""
    kafka.produce(stream.options["subscribe"], records(dict.fromkeys(FLAKY, b"flaky")))
    _, work, _ = shop(folder)
    how = OnError(5, "2s", "2s", then="fail")
    form = map_keys(work, SCHEMA, concurrency=8, on_error=how)
    stream.run(**form, batchTimeBudget="1s", slots="2")
    assert stream.sink.offsets == [*range(COUNT)], "each record once"
    assert each_key_in_order([(row.key, row.offset) for row in stream.sink.received])
    assert len(stream.sink.batches) >= 3, "two attempts fail, each in a batch of its own"
    assert attempts(folder) == dict.fromkeys(FLAKY, 2)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_batch_query_makes_all_attempts_in_its_tasks(
    spark: SparkSession, kafka: Kafka, folder: Path, concurrency: int
) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, MIXED)
    error, work, _ = shop(folder)
    how = OnError(4, "10ms", "100ms", then="skip", retry_on=error)
    rows = read(spark, kafka, topic, map_keys(work, SCHEMA, concurrency=concurrency, on_error=how))
    found = [(bytes(row.key), row.offset) for row in rows.collect()]
    assert sorted(offset for _, offset in found) == [number for number in range(COUNT) if number not in BAD]
    assert each_key_in_order(found)
    assert attempts(folder) == dict.fromkeys(FLAKY, 2) | dict.fromkeys(BAD, 4)


def read(spark: SparkSession, kafka: Kafka, topic: str, function: Mapping[str, str]) -> Any:
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic, "slots": "2"}
    return spark.read.format("coop-kafka").options(**options, **function).load()


@pytest.mark.parametrize("fail_on", [False, True])
def test_a_query_that_shall_fail_names_the_record_and_the_attempts(
    spark: SparkSession, kafka: Kafka, folder: Path, fail_on: bool
) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, MIXED)
    error, work, _ = shop(folder)
    how = OnError(2, "10ms", then="skip", fail_on=error) if fail_on else OnError(2, "10ms")
    with pytest.raises(PySparkException) as failed:
        read(spark, kafka, topic, map_keys(work, SCHEMA, on_error=how)).collect()
    assert "FUNCTION_FAILED: the function " in str(failed.value)
    assert (" at attempt 2:" in str(failed.value)) is not fail_on
    assert "no customer at " in str(failed.value)


def dead_letters(kafka: Kafka, topic: str) -> list[tuple[bytes | None, dict[str, bytes]]]:
    """Key and headers of each record."""
    return [(record.key, dict(record.headers)) for record in consumed(kafka.bootstrap, topic)]


@pytest.mark.parametrize("streaming", [True, False])
def test_a_record_that_fails_for_the_last_time_goes_to_the_dead_letters(
    stream: Stream, spark: SparkSession, kafka: Kafka, folder: Path, streaming: bool
) -> None:
    topic, dead = stream.options["subscribe"], kafka.create_topic("dead")
    kafka.produce(topic, [Record(r.value, r.key, headers=(("trace", b"7"),)) for r in MIXED])
    _, work, _ = shop(folder)
    how = OnError(3, "10ms", then="dead_letter", topic=dead)
    form = map_keys(work, SCHEMA, concurrency=8, on_error=how)
    if streaming:
        stream.run(**form)
        offsets = stream.sink.offsets
    else:
        offsets = sorted(row.offset for row in read(spark, kafka, topic, form).collect())
    assert offsets == [number for number in range(COUNT) if number not in BAD]
    found = {int(headers["coop.offset"]): (key, headers) for key, headers in dead_letters(kafka, dead)}
    assert sorted(found) == [*BAD]
    for offset, (key, headers) in found.items():
        assert key == b"key-%d" % (offset % KEYS)
        assert headers["trace"] == b"7"
        assert headers["coop.topic"].decode() == topic
        assert headers["coop.group"].decode() == (stream.options["group"] if streaming else "")
        assert headers["coop.error"].decode().endswith("ShopError")
        assert headers["coop.attempts"] == b"3"


@pytest.mark.parametrize("streaming", [True, False])
def test_a_missing_dead_letter_topic_ends_the_query_before_it_reads(
    stream: Stream, spark: SparkSession, kafka: Kafka, folder: Path, streaming: bool
) -> None:
    topic = stream.options["subscribe"]
    kafka.produce(topic, MIXED)
    _, work, _ = shop(folder)
    how = OnError(3, "10ms", then="dead_letter", topic=f"{topic}-no-such")
    form = map_keys(work, SCHEMA, on_error=how)
    with pytest.raises(PySparkException, match="UNKNOWN_TOPIC"):
        stream.run(**form) if streaming else read(spark, kafka, topic, form).collect()
    assert attempts(folder) == {}
