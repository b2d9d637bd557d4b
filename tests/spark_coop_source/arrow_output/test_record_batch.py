"""Arrow batches look as Spark's Kafka source would show the records, in sizes that suit the JVM."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from coordinator.errors import LogError
from coordinator.values.subscription import TopicPartition
from spark_coop_source.arrow_output import record_batch
from spark_coop_source.arrow_output.record_batch import completed, regrouped, shared, to_arrow
from spark_coop_source.arrow_output.schema import EVERY, PLAIN, schema
from spark_coop_source.decode.byte_column import ByteColumn
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.header_column import HEADERS, HeaderColumn

LOADS_PANDAS = """
import sys
import numpy as np
import pyarrow as pa
from coordinator.values.subscription import TopicPartition
from spark_coop_source.decode.byte_column import ByteColumn
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.header_column import HEADERS
from spark_coop_source.arrow_output.record_batch import to_arrow
numbers = np.array([1, 2], np.int64)
chunk = Chunk(*2 * [ByteColumn.of([b"a", None])], numbers, numbers, numbers.astype(np.int32), pa.nulls(2, HEADERS))
to_arrow(TopicPartition("t", 0), chunk, None, ("key", "topic", "offset", "timestamp")).validate(full=True)
print("pandas" in sys.modules)
"""
TP = TopicPartition("orders", 3)
CHUNK = Chunk(
    keys=ByteColumn.of([b"a", None, b""]),
    values=ByteColumn.of([b"1", b"2", None]),
    offsets=np.array([10, 12, 13], np.int64),
    timestamps_ms=np.array([1_700_000_000_123, -1, 0], np.int64),
    timestamp_types=np.array([0, -1, 1], np.int32),
    headers=pa.array([[("h", b"1"), ("h", b"2"), ("none", None)], None, None], HEADERS),
)
ROWS: list[dict[str, object]] = [
    {
        "key": b"a",
        "value": b"1",
        "topic": "orders",
        "partition": 3,
        "offset": 10,
        "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC),
        "timestampType": 0,
        "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": b"2"}, {"key": "none", "value": None}],
    },
    {
        "key": None,
        "value": b"2",
        "topic": "orders",
        "partition": 3,
        "offset": 12,
        "timestamp": datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC),
        "timestampType": -1,
        "headers": None,
    },
    {
        "key": b"",
        "value": None,
        "topic": "orders",
        "partition": 3,
        "offset": 13,
        "timestamp": datetime(1970, 1, 1, tzinfo=UTC),
        "timestampType": 1,
        "headers": None,
    },
]


def test_the_schema_is_the_one_that_spark_derives_from_the_source_schema() -> None:
    assert record_batch.EVERY.equals(to_arrow_schema(schema(EVERY), timezone="UTC"))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(None, ROWS, id="unless some are chosen all records are rows"),
        pytest.param([0, 1, 2], ROWS, id="all are chosen"),
        pytest.param([0, 2], [ROWS[0], ROWS[2]], id="one is not"),
        pytest.param([2, 0, 1], [ROWS[2], ROWS[0], ROWS[1]], id="in another order"),
        pytest.param([], [], id="none is"),
    ],
)
def test_records_become_rows(rows: list[int] | None, expected: list[dict[str, object]]) -> None:
    chosen = None if rows is None else np.array(rows, np.intp)
    batch = to_arrow(TP, CHUNK, chosen, EVERY)
    assert batch.schema.equals(record_batch.EVERY)
    assert batch.to_pylist() == expected
    batch.validate(full=True)


@pytest.mark.parametrize("columns", [PLAIN, ("offset", "value"), ("headers",), ("topic",)], ids=",".join)
def test_only_columns_that_are_wanted_are_there_in_the_order_of_a_row(columns: tuple[str, ...]) -> None:
    batch = to_arrow(TP, CHUNK, None, columns)
    assert batch.schema.equals(to_arrow_schema(schema(columns), timezone="UTC"))
    assert batch.to_pylist() == [{name: row[name] for name in EVERY if name in columns} for row in ROWS]


@pytest.mark.parametrize("columns", [EVERY, PLAIN, ("offset", "value"), ("headers",), ("topic",)], ids=",".join)
def test_columns_shared_by_tasks_become_the_same_rows(columns: tuple[str, ...]) -> None:
    handed_on = to_arrow(TP, CHUNK, None, shared(columns).names)
    assert handed_on.schema.equals(shared(columns))
    assert completed(TP, handed_on, columns).equals(to_arrow(TP, CHUNK, None, columns))


@pytest.mark.parametrize("time_ms", [2**63 - 1, -(2**63), (2**63 - 1) // 1000 + 1])
def test_a_time_that_spark_cannot_hold_names_the_record(time_ms: int) -> None:
    chunk = replace(CHUNK, timestamps_ms=np.array([0, time_ms, 0], np.int64))
    with pytest.raises(LogError, match=rf"orders-3 offset 12 has the timestamp {time_ms} ms"):
        to_arrow(TP, chunk, None, PLAIN)
    kept = to_arrow(TP, chunk, np.array([0, 2]), PLAIN)
    assert kept.column("offset").to_pylist() == [10, 13], "a record of another lane is none of our business"


def chunk_with_headers(wire: bytes) -> Chunk:
    """One record, with one header."""
    place, one, end = (np.array([number]) for number in (0, 1, len(wire)))
    return replace(CHUNK._slice(0, 1), headers=HeaderColumn(wire, place, one, end))


def test_headers_that_cannot_be_read_name_the_offsets() -> None:
    chunk = chunk_with_headers(b"\x01\x01")
    with pytest.raises(
        LogError, match=r"orders-3 offsets 10-10: the headers of a record cannot be read.*without a key"
    ):
        to_arrow(TP, chunk, None, EVERY)
    assert len(to_arrow(TP, chunk, None, PLAIN)) == 1, "nobody asked for them"


@pytest.mark.parametrize(
    ("key", "as_java_reads_it"),
    [
        pytest.param(b"\xff\xfe", "\ufffd\ufffd", id="no UTF-8 at all"),
        pytest.param(b"tr\xe2\x82ce", "tr\ufffdce", id="a character that is cut"),
        pytest.param(b"a\xed\xa0\x80b", "a\ufffdb", id="half of a pair"),
        pytest.param(b"a\xed\xa0b", "a\ufffdb", id="half of a pair that is cut"),
        pytest.param(b"\xf5\xc3\xa9\xc0\xaf", "\ufffd\u00e9\ufffd\ufffd", id="bytes that are never UTF-8"),
    ],
)
def test_a_header_s_key_that_is_no_text_is_read_as_java_reads_it(key: bytes, as_java_reads_it: str) -> None:
    chunk = chunk_with_headers(bytes([2 * len(key)]) + key + b"\x01")
    read = to_arrow(TP, chunk, None, EVERY).column("headers").to_pylist()
    assert read == [[{"key": as_java_reads_it, "value": None}]]


def batch_of(sizes: list[int], start: int) -> pa.RecordBatch:
    values = pa.array([b"x" * size for size in sizes], pa.binary())
    return pa.RecordBatch.from_arrays([pa.array(range(start, start + len(sizes))), values], ["offset", "value"])


@given(
    chunks=st.lists(st.lists(st.integers(0, 300), max_size=30), max_size=12),
    rows=st.integers(1, 20),
    size=st.integers(50, 2000),
)
def test_regrouping_keeps_the_rows_and_the_limits(chunks: list[list[int]], rows: int, size: int) -> None:
    starts = np.cumsum([0, *map(len, chunks)]).tolist()
    batches = [batch_of(sizes, start) for sizes, start in zip(chunks, starts, strict=False)]
    groups = list(regrouped(batches, rows, size))

    assert [o for group in groups for o in group.column("offset").to_pylist()] == list(range(starts[-1]))
    assert [v for group in groups for v in group.column("value").to_pylist()] == [
        v for batch in batches for v in batch.column("value").to_pylist()
    ]
    assert all(0 < len(group) <= rows for group in groups)
    assert all(group.nbytes <= size or len(group) == 1 for group in groups)


def test_small_batches_are_joined() -> None:
    groups = list(regrouped([batch_of([1] * 3, start) for start in range(0, 30, 3)], rows=10, size=10_000))
    assert [len(group) for group in groups] == [9, 9, 9, 3]


def test_a_batch_of_the_right_size_is_not_cut() -> None:
    assert [len(group) for group in regrouped([batch_of([1] * 25, 0)], rows=10, size=10_000)] == [10, 10, 5]


def test_a_worker_does_not_load_pandas_for_its_first_rows() -> None:
    printed = subprocess.run([sys.executable, "-c", LOADS_PANDAS], capture_output=True, text=True, check=True).stdout
    assert printed == "False\n"
