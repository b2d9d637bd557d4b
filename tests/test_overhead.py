"""What of a batch is not for records, told from batches of different size."""

import pytest

from coordinator.cost.overhead import FIRST_MS, Point, overhead

LINE: list[Point] = [(rows, 2_000.0 + rows) for rows in (1_000.0, 3_000.0, 8_000.0)]


@pytest.mark.parametrize(
    ("batches", "before_ms", "found"),
    [
        pytest.param(LINE, FIRST_MS, 2_000.0, id="batches on one line meet zero where there are no records"),
        pytest.param([*LINE, (3_000, 9_000)], FIRST_MS, 2_000.0, id="a slow key lies above it"),
        pytest.param([*LINE, (1_000, 6_000)], FIRST_MS, 2_000.0, id="a batch that something held up as well"),
        pytest.param([(4_000, 6_000.0), (4_100, 6_050.0)], 2_000.0, 2_000.0, id="batches of one size tell nothing"),
        pytest.param([(1_000, 3_000.0), (9_000, 3_100.0)], FIRST_MS, 2_400.0, id="never all of the shortest"),
        pytest.param([(4_000, 6_000.0)], FIRST_MS, FIRST_MS, id="one batch tells nothing"),
        pytest.param([(10, 300.0)], FIRST_MS, 240.0, id="a short batch tells that it is little"),
        pytest.param([(1_000, 1_000.0), (8_000, 8_000.0)], 5_000.0, 0.0, id="there may be hardly any"),
    ],
)
def test_overhead(batches: list[Point], before_ms: float, found: float) -> None:
    assert overhead(batches, before_ms) == pytest.approx(found)
