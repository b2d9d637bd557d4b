"""Rows that came after a later record of their key: each rule alone, and any sink against a slow oracle."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audits import Row, parts_of, sink_of
from coordinator.tools.audit.order import disorder
from coordinator.tools.audit.sink_rows import columns_of

A = 5
"""The key hash of all rows of the table."""


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([(0, 0, 1), (0, 0, 2), (1, 3, 3)], [], id="ascending"),
        pytest.param([(0, 0, 2), (0, 0, 1)], [(1, 2)], id="a lower offset behind a higher one in a file"),
        pytest.param([(0, 0, 2), (1, 0, 1)], [(1, 2)], id="a lower offset in a later batch"),
        pytest.param([(0, 0, 2), (1, 0, 0), (1, 0, 1)], [(0, 2), (1, 2)], id="each one that comes late counts"),
        pytest.param([(0, 0, 2), (0, 0, 1), (1, 0, 3)], [(1, 2)], id="a late one hides no later ones"),
        pytest.param([(0, 0, 1), (0, 1, 2)], [(2, None)], id="a key in two tasks of a batch"),
        pytest.param([(0, -1, 2), (0, -2, 1)], [(1, None)], id="two tasks: the offset does not matter"),
    ],
)
def test_disorder(rows: Sequence[Row], expected: list[tuple[int, int | None]]) -> None:
    sink = sink_of([(b, t + 2, o) for b, t, o in rows])
    offsets = sink.offsets
    found = disorder(sink, np.arange(len(rows)), np.full(len(rows), A), offsets)
    named = [None if at < 0 else int(offsets[at]) for at in found.before.tolist()]
    assert list(zip(offsets[found.rows].tolist(), named, strict=True)) == expected


def test_files_of_unknown_tasks_do_not_compare_within_a_batch() -> None:
    sink = sink_of([(0, -1, 2)])
    parts = parts_of([(0, -1, 2)]) + parts_of([(0, -1, 1)])
    sink = columns_of(parts, ["q"])[0]
    assert not len(disorder(sink, np.arange(2), np.full(2, A), sink.offsets).rows)


def test_batches_of_two_queries_do_not_compare() -> None:
    parts = parts_of([(5, 0, 7)], query=1) + parts_of([(9, 0, 3)], query=0)
    sink = columns_of(parts, ["q", "r"])[0]
    assert not len(disorder(sink, np.arange(2), np.full(2, A), sink.offsets).rows)


def test_a_late_row_of_one_query_is_not_compared_with_another_query() -> None:
    parts = parts_of([(5, 0, 9)], query=0) + parts_of([(0, 0, 5), (0, 0, 4)], query=1)
    sink = columns_of(parts, ["q", "r"])[0]
    found = disorder(sink, np.arange(3), np.full(3, A), sink.offsets)
    assert (sink.offsets[found.rows].tolist(), sink.offsets[found.before].tolist()) == ([4], [5])


def test_no_rows() -> None:
    none = np.zeros(0, np.int64)
    assert not len(disorder(sink_of([(0, 0, 1)]), none, none, none).rows)


def slow(rows: list[tuple[int, int, int, int]]) -> set[int]:
    """The offsets out of order among rows (batch, task, key, offset), record by record."""
    late = set()
    for n, (batch, task, key, offset) in enumerate(rows):
        before = [(b, t, o) for b, t, k, o in rows[:n] if k == key]
        if any(o > offset and (b, t) == (batch, task) for b, t, o in before):
            late.add(offset)
        if any(o > offset and b < batch for b, t, o in before):
            late.add(offset)
        if [t for b, t, _ in before if b == batch][:1] not in ([], [task]):
            late.add(offset)
    return late


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3)), max_size=30), st.randoms())
def test_any_sink_as_the_oracle_sees_it(places: list[tuple[int, int, int]], chance: object) -> None:
    places.sort(key=lambda p: p[:2])
    offsets = list(range(len(places)))
    chance.shuffle(offsets)  # type: ignore[attr-defined]
    rows = [(b, t, k, o) for (b, t, k), o in zip(places, offsets, strict=True)]
    if rows:
        sink = sink_of([(b, t, o) for b, t, _, o in rows])
        found = disorder(sink, np.arange(len(rows)), np.array([k for _, _, k, _ in rows]), sink.offsets)
        assert set(sink.offsets[found.rows].tolist()) == slow(rows)
