"""Records as rows for a function, and its rows as Arrow."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from arrow_records import batch
from spark_coop_source.function.rows import KeyRecords, UnfitRowsError, arrow_of, dicts_of, fits

SCHEMA = pa.schema([pa.field("key", pa.binary()), pa.field("n", pa.int64(), nullable=False)])


def test_records_are_a_sequence_of_rows_in_offset_order() -> None:
    arrow = batch([b"a", b"b", None], first=5)
    records = KeyRecords(arrow)
    assert len(records) == 3
    assert [record.offset for record in records] == [5, 6, 7]
    assert (records[1].key, records[-1].key, records[1]["offset"]) == (b"b", None, 6)
    assert [record.asDict() for record in records] == arrow.to_pylist()
    assert records.arrow is arrow


def several() -> Iterator[dict[str, int]]:
    yield {"n": 1}
    yield {"n": 2}


@pytest.mark.parametrize(
    ("made", "rows"),
    [
        pytest.param(None, [], id="nothing"),
        pytest.param({"n": 1}, [{"n": 1}], id="a dict"),
        pytest.param(Row(n=1), [{"n": 1}], id="a row"),
        pytest.param([], [], id="no rows"),
        pytest.param([{"n": 1}, Row(n=2)], [{"n": 1}, {"n": 2}], id="several"),
        pytest.param(several(), [{"n": 1}, {"n": 2}], id="a generator"),
    ],
)
def test_a_function_returns_none_one_or_several_rows(made: object, rows: list[dict[str, int]]) -> None:
    assert dicts_of(made) == rows


@pytest.mark.parametrize(
    ("made", "words"),
    [
        pytest.param(7, "a value of type int, not a dict", id="a number"),
        pytest.param("text", "a value of type str, not a dict", id="a text"),
        pytest.param([1], "a value of type int as a row", id="numbers"),
        pytest.param((b"a", 1), "a value of type bytes as a row", id="a plain tuple"),
        pytest.param(
            [Row(1, 2)],  # type: ignore[call-overload]
            "a value of type Row as a row, not a dict or a Row with names",
            id="a row of no names",
        ),
    ],
)
def test_anything_else_is_refused(made: object, words: str) -> None:
    with pytest.raises(UnfitRowsError, match=words):
        dicts_of(made)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        pytest.param([{"n": "one"}], "n", id="another type"),
        pytest.param([{"n": 2**70}], "too large|overflow|out of bounds", id="a number of more than 64 bits"),
        pytest.param([{"n": None}], "a null in the column n", id="null"),
        pytest.param([{"key": b"a"}], "a null in the column n", id="left out"),
        pytest.param([{"n": 1}, {"n": 1, "m": 2}], "the column 'm', which the schema does not have", id="one more"),
        pytest.param([{"n": 1, 5: 2}], "the column 5", id="no name"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows: list[dict[Any, Any]], words: str) -> None:
    with pytest.raises(UnfitRowsError, match=words):
        arrow_of(rows, SCHEMA)
    assert not fits(rows, SCHEMA)


@given(st.lists(st.tuples(st.none() | st.binary(max_size=5), st.integers(-(2**63), 2**63 - 1)), min_size=1))
def test_rows_come_back_as_they_were(values: list[tuple[bytes | None, int]]) -> None:
    rows = [{"key": key, "n": n} for key, n in values]
    assert fits(rows, SCHEMA)
    assert arrow_of(rows, SCHEMA).to_pylist() == rows


def test_times_are_of_utc() -> None:
    schema = pa.schema([pa.field("at", pa.timestamp("us", tz="UTC"))])
    at = dt.datetime(2026, 11, 28, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert arrow_of([{"at": at}], schema).to_pylist()[0]["at"] == at
