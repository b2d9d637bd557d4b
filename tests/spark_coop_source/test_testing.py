"""A user tests the function of a job without servers."""

import asyncio
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.types import BinaryType, DoubleType, StructField, StructType

from coordinator.errors import FunctionFailedError, InvalidOptionError
from spark_coop_source import FailedRecord, KeyRecords, OnError
from spark_coop_source.testing import FailedAttempt, run_keys, run_records

SCHEMA = StructType([StructField("key", BinaryType()), StructField("amount", DoubleType())])
ORDERS = [{"key": key, "value": value} for key, value in ((b"a", b"1"), (b"b", b"x"), (b"a", b"2"), (b"b", b"3"))]


def charged(record: Row) -> dict[str, Any]:
    return {"key": record.key, "amount": float(record.value)}


async def charged_async(record: Row) -> dict[str, Any]:
    await asyncio.sleep(0)
    return charged(record)


@pytest.mark.parametrize("function", [charged, charged_async])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_rows_of_a_key_are_in_order_and_a_bad_record_is_a_dead_letter(function: Any, concurrency: int) -> None:
    how = OnError(attempts=3, backoff="1m", then="dead_letter", topic="dead")
    outcome = run_records(function, ORDERS, SCHEMA, concurrency=concurrency, on_error=how)
    assert [row["amount"] for row in outcome.rows if row["key"] == b"a"] == [1.0, 2.0]
    assert [row["amount"] for row in outcome.rows if row["key"] == b"b"] == [3.0]
    assert outcome.dead_letters == [FailedAttempt(1, "ValueError", "could not convert string to float: b'x'", 3)]
    assert outcome.calls == {0: 1, 1: 3, 2: 1, 3: 1}, "and no record is tried again for another one"


def test_a_key_that_is_parked_waits_with_all_behind_it() -> None:
    outcome = run_records(charged, ORDERS, SCHEMA, on_error=OnError(attempts=2, then="park"))
    assert [row["key"] for row in outcome.rows] == [b"a", b"a"]
    assert [(each.offset, each.attempts) for each in outcome.parked] == [(1, 2)]
    assert outcome.calls[3] == 0


def test_a_record_is_skipped() -> None:
    outcome = run_records(charged, ORDERS, SCHEMA, on_error=OnError(attempts=1, then="skip"))
    assert (len(outcome.rows), outcome.skipped) == (3, 1)


def test_without_on_error_it_fails_as_the_query_would() -> None:
    with pytest.raises(FunctionFailedError, match=r"raised ValueError, called with topic-0 offset 1 \(key hash"):
        run_records(charged, ORDERS, SCHEMA)


def test_a_function_of_a_key_names_the_record_that_fails() -> None:
    def all_charged(key: bytes | None, records: KeyRecords) -> list[dict[str, Any]]:
        rows = list[dict[str, Any]]()
        for number, record in enumerate(records):
            try:
                rows.append(charged(record))
            except ValueError as error:
                raise FailedRecord(number, rows) from error
        return rows

    orders = [{"key": b"a", "value": value} for value in (b"1", b"x", b"2")]
    outcome = run_keys(all_charged, orders, SCHEMA, on_error=OnError(attempts=1, then="skip"))
    assert [row["amount"] for row in outcome.rows] == [1.0, 2.0]
    assert outcome.calls[0] == 1


def test_records_may_name_their_partition_offset_and_headers() -> None:
    seen = list[tuple[Any, ...]]()

    def noted(record: Row) -> None:
        seen.append((record.topic, record.partition, record.offset, record.headers))

    headers = [{"key": "h", "value": b"1"}]
    records: list[dict[str, Any]] = [
        {"key": b"a", "value": b"v"},
        {"key": b"a", "topic": "t", "partition": 2, "offset": 7, "headers": headers},
    ]
    assert run_records(noted, records, SCHEMA).rows == []
    assert seen == [("topic", 0, 0, None), ("t", 2, 7, headers)]


def test_what_the_job_refuses_is_refused_here() -> None:
    with pytest.raises(InvalidOptionError, match=r"cannot be called as f\(key, records\)"):
        run_keys(charged, ORDERS, SCHEMA)
