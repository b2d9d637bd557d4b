"""The calls of one attempt, and what they leave."""

from collections.abc import Collection

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arrow_records import ALL, batch, points
from spark_coop_source.function.attempts import AttemptEnd, attempt, calls
from spark_coop_source.function.slice_batches import SliceBatch


class Function:
    """Fails on calls with certain offsets; notes its calls."""

    def __init__(self, fails: Collection[int]) -> None:
        self.fails, self.calls = fails, list[list[int]]()

    def __call__(self, records: SliceBatch) -> pa.RecordBatch:
        offsets = [offset for _, offset in points([records.records])]
        self.calls.append(offsets)
        if any(offset in self.fails for offset in offsets):
            raise ValueError(offsets)
        return records.records


def worked(function: Function, count: int, *, again: bool = False, singly: bool = True) -> AttemptEnd:
    records = SliceBatch(batch([b"a"] * count), ALL, 7)
    return attempt(function, calls(records, again=again, singly=singly))


def left(outcome: AttemptEnd) -> list[int]:
    return [] if outcome.rest is None else [offset for _, offset in points([outcome.rest.records])]


@pytest.mark.parametrize(
    ("fails", "again", "singly", "called", "rest"),
    [
        pytest.param((), False, True, [[0, 1, 2, 3]], [], id="all is well"),
        pytest.param((2,), False, True, [[0, 1, 2, 3], [0], [1], [2]], [2, 3], id="one record fails"),
        pytest.param((0,), False, True, [[0, 1, 2, 3], [0]], [0, 1, 2, 3], id="the first one fails"),
        pytest.param((2,), False, False, [[0, 1, 2, 3]], [0, 1, 2, 3], id="without calls of single records"),
        pytest.param((), True, True, [[0], [1, 2, 3]], [], id="the first one had failed"),
        pytest.param((0,), True, True, [[0]], [0, 1, 2, 3], id="the first one fails again"),
        pytest.param((3,), True, True, [[0], [1, 2, 3], [1], [2], [3]], [3], id="another one fails then"),
    ],
)
def test_calls_of_an_attempt(
    fails: tuple[int, ...], again: bool, singly: bool, called: list[list[int]], rest: list[int]
) -> None:
    function = Function(fails)
    outcome = worked(function, 4, again=again, singly=singly)
    assert function.calls == called
    assert left(outcome) == rest
    assert (outcome.error is None) == (not fails)


@given(st.integers(1, 8), st.sets(st.integers(0, 7)), st.booleans())
def test_an_attempt_ends_before_the_first_record_that_fails(count: int, fails: set[int], again: bool) -> None:
    outcome = worked(Function(fails), count, again=again)
    first = min((offset for offset in fails if offset < count), default=count)
    assert [offset for _, offset in points(each.made for each in outcome.done if each.made)] == list(range(first))
    assert left(outcome) == list(range(first, count))
    assert (outcome.failed.first if outcome.failed else count) == first
