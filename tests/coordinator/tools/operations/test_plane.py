"""The plane of a partition: lanes with their owners, and the partition to look at first."""

from dataclasses import replace

import pytest

from coordinator.errors import UnknownTopicError
from coordinator.progress.segments import Rectangle
from coordinator.redis.group_state import GroupState
from coordinator.tools.operations.plane import chosen, plane
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition

TP, OTHER = TopicPartition("orders", 0), TopicPartition("bills", 1)
LOW, HIGH = cuts(2)
STATE = GroupState(0, {}, {}, {}, {}, {TP: ((WHOLE, 40),), OTHER: ((WHOLE, 90),)}, {}, {}, {TP: 50, OTHER: 95})


def test_a_lane_ends_where_its_owner_does() -> None:
    seen = plane(replace(STATE, owners={TP: ((LOW, "e.1", "a"),)}), TP)
    assert [(lane.segment.hashes, lane.member) for lane in seen.lanes] == [(LOW, "a"), (HIGH, None)]
    assert seen.members == ("a",)


def test_it_begins_a_little_before_the_stable_offset_and_ends_at_the_log_end_or_behind_it() -> None:
    seen = plane(STATE, TP)
    assert (seen.start, seen.stable, seen.furthest, seen.end) == (38, 40, 40, 50)
    ahead = plane(replace(STATE, ics={TP: (Rectangle(LOW, OffsetRange(60, 70)),)}), TP)
    assert (ahead.stable, ahead.furthest, ahead.end) == (40, 70, 70)


@pytest.mark.parametrize(
    ("topic", "partition", "found"), [(None, None, TP), ("bills", None, OTHER), (None, 1, OTHER), ("orders", 0, TP)]
)
def test_the_partition_with_the_largest_lag_is_chosen(
    topic: str | None, partition: int | None, found: TopicPartition
) -> None:
    assert chosen(STATE, topic, partition) == found


def test_no_such_partition() -> None:
    with pytest.raises(UnknownTopicError, match=r"name one of these: bills-1, orders-0\."):
        chosen(STATE, "orders", 1)
