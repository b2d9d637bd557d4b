"""The read model behind `coop-kafka groups list`: a line for each group. Pure."""

from dataclasses import dataclass

from coordinator.redis.group_state import GroupState
from coordinator.tools.operations.views import oldest_end_s, total_lag, view

UNREADABLE = "Unreadable"
"""The state of a group whose keys in Redis are damaged."""


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group in one line."""

    group: str
    state: str  # as `describe` has it, or `Unreadable`
    members: int | None = None  # with a lease; None if the group is unreadable
    lag: int | None = None  # of all partitions with a known end; None while no end is known
    end_age_s: float | None = None  # age of the oldest of these ends


def group_line(group: str, state: GroupState) -> GroupLine:
    """The line of a group."""
    seen = view(group, state)
    live = sum(m.lease_left_ms > 0 for m in seen.members)
    return GroupLine(group, seen.state, live, total_lag(seen.partitions), oldest_end_s(seen.partitions))
