"""The columns of a sink from its parts: batches of several queries, partitions, names, and values that are none."""

import numpy as np
import pyarrow as pa
import pytest

from audits import parts_of
from coordinator.errors import SinkError
from coordinator.tools.audit.columns import UNKNOWN
from coordinator.tools.audit.sink_rows import Names, SinkPart, columns_of, number_of, numbers_of


def test_rows_are_together_by_batch_and_keep_their_order_in_it() -> None:
    found = columns_of(parts_of([(1, 0, 7), (1, 0, 5), (0, 3, 9), (1, 1, 6)]), ["q"])[0]
    assert found.offsets.tolist() == [9, 7, 5, 6]
    assert [found.label(row) for row in range(4)] == ["0", "1", "1", "1"]
    assert found.tasks[found.files].tolist() == [3, 0, 0, 1]


def test_batches_of_two_queries_are_named_by_both() -> None:
    found = columns_of(parts_of([(3, 0, 1)], query=1) + parts_of([(3, 0, 2)]), ["first", "second"])[0]
    assert [found.label(row) for row in range(2)] == ["first/3", "second/3"]
    assert found.queries.tolist() == [0, 1]


def test_each_partition_has_its_rows() -> None:
    ones = np.ones(3, np.int64)
    part = SinkPart(np.array([0, 7, 0]), np.array([1, 2, 3]), UNKNOWN * ones, 0 * ones)
    found = columns_of([part], ["q"])
    assert {number: of.offsets.tolist() for number, of in found.items()} == {0: [1, 3], 7: [2]}
    assert found[0].label(0) == "?"


def test_a_sink_without_rows() -> None:
    assert columns_of([], []) == {}


def test_numbers_of_any_column_that_holds_some() -> None:
    for column in (pa.array([1, 2], pa.int16()), pa.array(["1", "2"]), pa.array([0, 1, 2], pa.int64()).slice(1)):
        assert numbers_of(pa.chunked_array([column]), "x").tolist() == [1, 2]
    assert numbers_of(pa.chunked_array([pa.array([1, None])]), "x", 5).tolist() == [1, 5]
    assert numbers_of(pa.chunked_array([], pa.int64()), "x").tolist() == []


@pytest.mark.parametrize(
    ("column", "words"),
    [
        pytest.param(pa.array(["a"]), "column x is of the type string, and holds other values than", id="words"),
        pytest.param(pa.array([1, None]), "column x holds 1 nulls", id="nulls"),
        pytest.param(pa.array([1.5]), "column x is of the type double", id="fractions"),
        pytest.param(pa.array([b"\xff"]), "column x is of the type binary", id="bytes"),
    ],
)
def test_other_columns_are_an_error(column: pa.Array, words: str) -> None:
    with pytest.raises(SinkError, match=words):
        numbers_of(pa.chunked_array([column]), "column x")


def test_the_number_in_a_folders_name() -> None:
    assert (number_of("3", "x", None), number_of(None, "x", 7)) == (3, 7)
    assert number_of("__HIVE_DEFAULT_PARTITION__", "x", 7) == 7
    with pytest.raises(SinkError, match="x is 'a', not a whole number"):
        number_of("a", "x", 7)


def test_names_keep_their_numbers() -> None:
    names = Names({})
    column = pa.chunked_array([pa.array(["b", None, "a"]), pa.array(["b"])])
    assert names.numbers(column).tolist() == [0, 1, 2, 0]
    assert (names.number("a"), [*names.found]) == (2, ["b", "", "a"])
