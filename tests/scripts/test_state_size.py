"""The state of a partition with one stuck key does not grow with the records ahead of it."""

import state_size


def test_positions_stay_small_where_plain_offset_ranges_grow(redis_url: str) -> None:
    few, many, more = state_size.sizes(redis_url, (1_000, 70_000, 140_000))
    assert few.positions == many.positions == more.positions == state_size.LANES
    assert max(few.ours, many.ours, more.ours) <= state_size.MOST_BYTES
    assert more.ours < 1.1 * many.ours, "an allocator rounds, but nothing grows"
    assert few.ranges * 50 < many.ranges < more.ranges
    assert few.plain < many.plain < more.plain
