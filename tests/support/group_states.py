"""A group's state with two partitions, for the views of gaps and key owners."""

from coordinator.progress.segments import Rectangle
from coordinator.redis.group_state import GroupState
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import TopicPartition

TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
LOWER, UPPER = cuts(2)


def group_state(segments: tuple[tuple[HashRange, int], ...], *ics: Rectangle) -> GroupState:
    """Partition 0 has these segments and individual commits; a member owns its lower half."""
    return GroupState(
        now_ms=0,
        meta={},
        leases_ms={},
        members={"m-1": {"host": "h1"}},
        topics={},
        segments={TP: segments, OTHER: ((WHOLE, 3),)},
        owners={TP: ((LOWER, "n.1", "m-1"),)},
        stable={},
        ends={},
        ics={TP: ics},
    )
