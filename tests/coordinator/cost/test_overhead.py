"""The part of a batch's time that is not for records, computed from batches of different sizes."""

import pytest

from coordinator.cost.overhead import FIRST_MS, GROWTH, Point, healthy_ms, noise, overhead

LINE: list[Point] = [(rows, 2_000.0 + rows) for rows in (1_000.0, 3_000.0, 6_000.0, 9_000.0)]


@pytest.mark.parametrize(
    ("batches", "before_ms", "found"),
    [
        pytest.param(LINE, 2_000.0, 2_000.0, id="batches on one line meet zero where there are no records"),
        pytest.param(LINE, FIRST_MS, GROWTH * FIRST_MS, id="it grows slowly, for a slow key may look like it"),
        pytest.param(LINE, 5_000.0, 2_000.0, id="... and falls at once"),
        pytest.param(LINE[:3], FIRST_MS, FIRST_MS, id="a few batches do not prove that it is more"),
        pytest.param([*LINE, (3_000, 9_000)], 2_000.0, 2_000.0, id="a slow key lies above the line"),
        pytest.param([*LINE, (1_000, 6_000)], 2_000.0, 2_000.0, id="a batch that something held up as well"),
        pytest.param(
            [(4_000, 6_000.0), (4_100, 6_050.0)] * 2, 2_000.0, 2_000.0, id="batches of one size prove nothing"
        ),
        pytest.param([(1_000, 3_000.0), (9_000, 3_100.0)] * 2, 3_000.0, 2_400.0, id="never all of the shortest"),
        pytest.param([(4_000, 6_000.0)], FIRST_MS, FIRST_MS, id="one batch proves nothing"),
        pytest.param([(10, 200.0)], FIRST_MS, 160.0, id="a short batch proves that it is little"),
        pytest.param([(1_000, 1_000.0), (8_000, 8_000.0)], 5_000.0, 0.0, id="there may be hardly any"),
    ],
)
def test_overhead(batches: list[Point], before_ms: float, found: float) -> None:
    assert overhead(batches, before_ms) == pytest.approx(found)


@pytest.mark.parametrize(
    ("batches", "found"),
    [
        pytest.param(LINE, 0.0, id="batches on a line are as long as they should be"),
        pytest.param([*LINE[1:], (3_000, 9_000)], 0.0, id="one that is not is no noise"),
        pytest.param([(4_000, 6_000.0 + ms) for ms in (-900, -300, 0, 300, 900)], 300.0, id="half are so far off"),
        pytest.param([(4_000, 6_000.0 + ms) for ms in (-3_000, 0, 3_000)] * 2, 2_000 / 3, id="never most of the time"),
    ],
)
def test_noise(batches: list[Point], found: float) -> None:
    assert noise(batches, 2_000.0) == pytest.approx(found)


@pytest.mark.parametrize(
    ("batches", "noise_ms", "found"),
    [
        pytest.param(LINE, 0.0, 1.0, id="the time of records beside Spark's own time"),
        pytest.param([*LINE, (1_000, 9_000)], 0.0, 1.0, id="of the batch in which they took least"),
        pytest.param(LINE[:1], 500.0, 1.5, id="a quick batch may be chance"),
        pytest.param([*LINE, (1_000, 2_100)], 0.0, 1.0, id="a batch of almost only Spark's own time proves nothing"),
        pytest.param([(1_000, 2_100)], 0.0, None, id="and so it may be unknown"),
    ],
)
def test_cost_of_a_healthy_record(batches: list[Point], noise_ms: float, found: float | None) -> None:
    assert healthy_ms(batches, 2_000.0, noise_ms) == (None if found is None else pytest.approx(found))
