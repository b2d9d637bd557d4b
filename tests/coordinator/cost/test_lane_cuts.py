"""Lanes by their work: equal parts, slow keys alone, few changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.cost.lane_cuts import UNEVEN, VERY_UNEVEN, better, by_work, largest
from coordinator.cost.profile import Cell, Profile
from coordinator.key_hash import cut_bound, cuts
from coordinator.ranges import HASH_MAX, WHOLE, HashRange

EVEN = tuple(cut_bound(i, 4) for i in range(1, 4))
KEY = 1 << 61
ALONE = HashRange(KEY, KEY)


def with_key(record_ms: float, density: float) -> Profile:
    """A key with so dear or so many records among even ones."""
    below, above = HashRange(0, KEY - 1), HashRange(KEY + 1, HASH_MAX)
    return (Cell(below, below.share, 1.0), Cell(ALONE, density, record_ms), Cell(above, above.share, 1.0))


@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=20), st.integers(1, 16))
def test_lanes_have_equal_work(densities: list[float], count: int) -> None:
    profile = tuple(Cell(h, d) for h, d in zip(cuts(len(densities)), densities, strict=True))
    bounds = by_work(profile, count, rate_ms=1.0, slow_ms=2.0)
    assert len(bounds) <= count - 1 + len(densities)
    assert largest(profile, bounds, 1.0) <= sum(densities) / count * 1.01


@pytest.mark.parametrize(("record_ms", "density"), [(100.0, 0.001), (1.0, 0.5)], ids=["slow records", "many records"])
def test_a_key_that_stands_out_has_its_own_lane(record_ms: float, density: float) -> None:
    bounds = by_work(with_key(record_ms, density), 4, rate_ms=1.0, slow_ms=2.0)
    assert ALONE in WHOLE.cut(bounds)


def test_slow_keys_leave_most_lanes_to_the_others() -> None:
    bounds = by_work(with_key(10_000.0, 0.1), 4, rate_ms=1.0, slow_ms=2.0)
    assert largest(with_key(10_000.0, 0.1), bounds, 1.0) <= 1 / 3 * 1.01


def uneven(by: float) -> Profile:
    """The first lane of four has so many times the work that it should have."""
    return tuple(Cell(h, d) for h, d in zip(cuts(4), (by, *[(4 - by) / 3] * 3), strict=True))


@pytest.mark.parametrize(
    ("by", "soon", "cut"),
    [
        pytest.param(UNEVEN - 0.01, False, False, id="even enough"),
        pytest.param(UNEVEN + 0.05, False, True, id="uneven"),
        pytest.param(UNEVEN + 0.05, True, False, id="uneven, soon after another change"),
        pytest.param(VERY_UNEVEN + 0.1, True, True, id="very uneven"),
    ],
)
def test_lanes_are_cut_anew_where_that_evens_out_the_work(by: float, soon: bool, cut: bool) -> None:
    assert (better(EVEN, EVEN, uneven(by), 1.0, 2.0, soon=soon) != EVEN) == cut


def test_a_slow_key_has_its_own_lane_even_if_it_is_little_work() -> None:
    assert ALONE in WHOLE.cut(better(EVEN, EVEN, with_key(100.0, 0.0001), 1.0, 2.0, soon=True))


def test_lanes_are_even_again_once_no_key_stands_out() -> None:
    before = better(EVEN, EVEN, with_key(100.0, 0.1), 1.0, 2.0, soon=True)
    assert better(before, EVEN, (Cell(WHOLE, 1.0, 1.0),), 1.0, 2.0, soon=False) == EVEN
