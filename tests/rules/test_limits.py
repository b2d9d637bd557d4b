"""What holds a lane back in a batch: the cap, growth, poison, event time (docs/protocol.md#limits-of-a-batch)."""

import pytest

from coordinator.plan.event_time_lead import unread, within_lead
from coordinator.values.subscription import TopicPartition
from lane_leads import lanes, reads

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.parametrize(
    ("positions", "later", "expected"),
    [
        pytest.param((10, 40), 60, [60, 60], id="both read up to the first record that is too late"),
        pytest.param((10, 70), 60, [60, 70], id="a lane that is beyond it waits"),
        pytest.param((10, 70), 100, [100, 100], id="no record is too late"),
        pytest.param((10, 70), 3, [11, 70], id="times jump back: the lane furthest behind reads one offset"),
        pytest.param((100, 70), 80, [100, 80], id="a lane with nothing to read delays no other lane"),
    ],
)
def test_lane_lead__how_far_two_lanes_read(positions: tuple[int, ...], later: int, expected: list[int]) -> None:
    """Rule: lane-lead. `maxLaneLead` limits how far a lane may be ahead of the oldest unread record, in record time."""
    work, ends = {A: lanes(*positions)}, {A: 100}
    assert reads(within_lead(work, {A: later}, unread(work, ends)), ends) == {A: expected}
