"""The read model behind `coop-kafka list`: a line for each group. Pure."""

from dataclasses import dataclass
from typing import Annotated

from coordinator.redis.group_state import GroupState
from coordinator.tools.fields import Means
from coordinator.tools.operations.views import live, oldest_end_s, total_lag, view

UNREADABLE = "Unreadable"
"""The state of a group whose keys in Redis are damaged."""


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group in one line."""

    group: Annotated[str, Means("Name of the group.", "GROUP")]
    state: Annotated[str, Means("[State](operations.md#describe) of the group, or `Unreadable`.", "STATE")]
    members: Annotated[int | None, Means("Members with a lease.", "MEMBERS")] = None
    lag: Annotated[int | None, Means("Lag in offsets, of partitions with a known end offset.", "LAG")] = None
    end_age_s: Annotated[float | None, Means("Age of the oldest end offset.", "END AGE S")] = None


def group_line(group: str, state: GroupState) -> GroupLine:
    """The line of a group."""
    seen = view(group, state)
    return GroupLine(group, seen.state, len(live(state)), total_lag(seen.partitions), oldest_end_s(seen.partitions))
