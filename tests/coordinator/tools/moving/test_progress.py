"""Offsets as ranges."""

import pytest

from coordinator.tools.moving.progress import completed
from coordinator.values.ranges import OffsetRange


@pytest.mark.parametrize(
    ("offsets", "ranges"),
    [
        ([], ()),
        ([5], (OffsetRange(5, 6),)),
        ([5, 6, 8], (OffsetRange(5, 7), OffsetRange(8, 9))),
    ],
)
def test_offsets_become_ranges(offsets: list[int], ranges: tuple[OffsetRange, ...]) -> None:
    assert completed(offsets) == ranges
