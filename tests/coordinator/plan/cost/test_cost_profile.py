"""Known costs over the hash space: cells tile it after any batch."""

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan.cost.profile import MOST_CELLS, UNKNOWN, Cell, changed, compacted, one, within
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange

LOWER, UPPER = cuts(2)
hashes = st.tuples(st.integers(0, HASH_MAX), st.integers(0, HASH_MAX)).map(lambda ends: HashRange(*sorted(ends)))


@given(st.lists(st.tuples(hashes, st.floats(0.001, 1)), max_size=20))
def test_cells_tile_the_hash_space_after_each_change(learned: list[tuple[HashRange, float]]) -> None:
    profile = UNKNOWN
    for of, density in learned:
        profile = compacted(changed(profile, of, partial(replace, density=density)))
    assert [c.hashes.lo for c in profile] == [0, *(c.hashes.hi + 1 for c in profile[:-1])]
    assert profile[-1].hashes.hi == HASH_MAX


@given(hashes)
def test_records_are_spread_evenly_over_a_cell(of: HashRange) -> None:
    assert sum(c.density for c in within(UNKNOWN, of)) == pytest.approx(of.share)


def test_cells_as_one_add_their_records_and_weigh_their_costs() -> None:
    profile = (Cell(LOWER, 0.3, 1.0), Cell(UPPER, 0.1, 5.0))
    both = one(profile, WHOLE)
    assert both.density == pytest.approx(0.4)
    assert both.record_ms == pytest.approx(2.0)


def test_an_unknown_part_does_not_dilute_the_known_cost_of_another() -> None:
    both = one((Cell(LOWER, 0.5, None), Cell(UPPER, 0.5, 4.0)), WHOLE)
    assert both.record_ms == 4.0


def test_equal_neighbours_become_one_cell() -> None:
    assert compacted((Cell(LOWER, 0.5, 1.0), Cell(UPPER, 0.5, 1.0))) == (Cell(WHOLE, 1.0, 1.0),)
    assert len(compacted((Cell(LOWER, 0.5, 1.0), Cell(UPPER, 0.5, 2.0)))) == 2


def test_there_are_never_more_cells_than_the_limit() -> None:
    many = tuple(Cell(h, 0.1, float(i)) for i, h in enumerate(cuts(3 * MOST_CELLS)))
    assert len(compacted(many)) <= MOST_CELLS
