"""Which records the group has done: below the stable offset, in lanes ahead of it, and individual commits."""

import numpy as np

from coordinator.progress.segments import Progress, Segment
from coordinator.tools.audit.columns import LogColumns
from coordinator.tools.audit.expected import done
from coordinator.values.ranges import OffsetRange
from group_states import LOWER, UPPER


def log(*records: tuple[int, int]) -> LogColumns:
    offsets, hashes = (np.array(column, np.int64) for column in zip(*records, strict=True))
    return LogColumns(offsets, hashes, np.ones(len(records), np.bool_))


PROGRESS = Progress((Segment(LOWER, 5), Segment(UPPER, 8, (OffsetRange(10, 12),))))


def test_each_hash_is_done_up_to_its_own_position_and_where_it_has_commits() -> None:
    low, high = LOWER.lo, UPPER.hi
    records = [(4, low), (4, high), (5, low), (7, high), (8, high), (10, low), (10, high), (11, UPPER.lo), (12, high)]
    expected = [True, True, False, True, False, False, True, True, False]
    assert done(PROGRESS, log(*records)).tolist() == expected


def test_holes_in_the_log_are_nothing() -> None:
    assert done(PROGRESS, log((1, LOWER.hi), (900, LOWER.hi))).tolist() == [True, False]


def test_only_offsets_below_the_stable_offset() -> None:
    assert done(PROGRESS, log((0, 1), (4, UPPER.hi))).all()
