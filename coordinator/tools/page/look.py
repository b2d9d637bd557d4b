"""A group at one moment, for the page."""

from dataclasses import dataclass

from coordinator.plan.poison import Strike
from coordinator.progress.failing import FailingRecord
from coordinator.redis.group_state import GroupState
from coordinator.tools.operations.top_view import TopView


@dataclass(frozen=True, slots=True)
class PageLook:
    """What Redis holds of a group, with log ends of Kafka where they are asked for."""

    top: TopView
    state: GroupState
    failing: tuple[FailingRecord, ...]
    strikes: tuple[Strike, ...]
    trouble: str = ""  # why the log ends are those that a member saw last
