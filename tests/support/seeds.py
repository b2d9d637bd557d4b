"""Seeds of tests that try many random cases: some of them for each change, the others in the lane `--long`."""

import pytest


def many(seeds: range, part: int = 5) -> pytest.MarkDecorator:
    """Run the test with the first of `part` parts of its seeds, and with the others as a long test."""
    some = len(seeds) // part
    return pytest.mark.parametrize(
        "seeds", [pytest.param(seeds[:some], id="some"), pytest.param(seeds[some:], id="more", marks=pytest.mark.long)]
    )
