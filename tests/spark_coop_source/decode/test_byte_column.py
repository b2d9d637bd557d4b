"""Byte strings somewhere in a buffer become Arrow arrays that hold only the rows taken."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spark_coop_source.decode.byte_column import ByteColumn

entries = st.lists(st.none() | st.binary(max_size=20), max_size=30)


@given(entries, st.data())
def test_any_rows_of_any_column_are_taken(entries: list[bytes | None], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(entries) - 1)) if entries else st.just([]))
    taken = ByteColumn.of(entries).take(np.array(rows, np.intp))
    taken.validate(full=True)
    assert taken.to_pylist() == [entries[row] for row in rows]


@given(entries, st.integers(0, 30), st.integers(0, 30))
def test_a_slice_is_the_rows_within_it(entries: list[bytes | None], start: int, stop: int) -> None:
    column = ByteColumn.of(entries).slice(start, stop)
    assert column.take(np.arange(len(column))).to_pylist() == entries[start:stop]
    assert column.size == sum(len(entry or b"") for entry in entries[start:stop])


def test_bytes_between_the_taken_rows_are_not_copied() -> None:
    column = ByteColumn.of([b"x" * 1_000_000, b"wanted", b"y" * 1_000_000])
    assert column.take(np.array([1])).nbytes < 100
