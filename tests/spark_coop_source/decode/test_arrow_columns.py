"""Arrow columns over numpy's memory: equal to the columns that pyarrow makes of the same values."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_coop_source.decode.arrow_columns import numbers, repeated


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@given(st.lists(st.tuples(st.integers(-(2**31), 2**31 - 1), st.booleans())))
def test_numbers_are_a_column_with_nulls(kind: Any, rows: list[tuple[int, bool]]) -> None:
    values, nulls = np.array([v for v, _ in rows], kind), np.array([n for _, n in rows], np.bool_)
    column = numbers(values, nulls)
    column.validate(full=True)
    assert column.to_pylist() == [None if null else value for value, null in rows]
    assert numbers(values).equals(pa.array(values))


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 50))
def test_one_text_is_a_column_of_itself(text: str, count: int) -> None:
    column = repeated(text, count)
    column.validate(full=True)
    assert column.equals(pa.array([text] * count, pa.string()))
