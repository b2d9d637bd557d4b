"""What a group's service is told, as one value. Durations in milliseconds."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from coordinator.assignment.ownership_listener import OwnershipListener
from coordinator.assignors.assignor import Assignor
from coordinator.assignors.grouped import Grouped

MAX_INDIVIDUAL_COMMITS, MAX_RANGES = 10_000, 10_000


@dataclass(frozen=True, slots=True)
class StandaloneSettings:
    """Settings of a query without a group."""

    fail_on_data_loss: bool = True
    batch_budget_ms: int = 0  # as for a group, like the others
    max_lead_ms: int | None = None
    concurrency: int = 1


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Settings of one member of a group."""

    group: str
    capacity: int = 1  # how much of the group's work this member wants
    session_ms: int = 45_000
    longest_ms: int = 300_000
    sharing: bool = True  # whether this member may be given parts of partitions
    demanding: bool = False  # whether its user asked for parts: refused where policies forbid it
    batch_budget_ms: int = 10_000  # what a batch should take; 0: nothing is bounded by time
    max_lead_ms: int | None = None  # record time that a lane may be ahead of the one furthest behind; None: any
    concurrency: int = 1  # keys at once inside a task, where the user's function runs in `read`
    assignors: tuple[Assignor, ...] = (Grouped(),)  # by preference
    listener: OwnershipListener = field(default_factory=OwnershipListener)
    heartbeat_ms: int = 3_000
    retention_ms: int = 10_080 * 60_000
    max_outage_ms: int = 60_000
    max_individual_commits: int = MAX_INDIVIDUAL_COMMITS  # that a partition may hold (code 92)
    max_ranges: int = MAX_RANGES  # collected offset ranges at which an acknowledger commits by itself
    growth_grace_ms: int = 600_000  # how long new partitions wait for older ones after a growth was seen; 0: not at all
    fail_on_data_loss: bool = True
    unread_batches: bool = False  # whether a batch that the sink completed without reading it counts as done
    on_state_loss: Literal["fail", "earliest"] = "fail"
    starting_option: str | None = None  # the user's option that names the first positions, for messages
    tokens: Callable[[int], str] = secrets.token_hex  # random hex digits of so many bytes; a simulation gives its own
    watch: Callable[[Any], None] | None = None  # called with each state of the member; for tests and the simulation

    @property
    def commit_fields(self) -> dict[str, str]:
        """What the Commit API reads of its member in Redis."""
        return {
            "max.individual.commits": str(self.max_individual_commits),
            "max.num.ranges.to.commit": str(self.max_ranges),
        }
