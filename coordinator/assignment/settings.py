"""The settings of one query as one value. Durations in milliseconds."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from coordinator.assignment.assignors.assignor import Assignor
from coordinator.assignment.assignors.grouped import Grouped
from coordinator.assignment.ownership_listener import OwnershipListener
from coordinator.values.record_filter import EVERYTHING, RecordFilter

MAX_INDIVIDUAL_COMMITS, MAX_RANGES, MAX_DEFERRED_KEYS = 10_000, 10_000, 10_000
LONGEST_DELAY_MS = 86_400_000
"""The longest delay of a failing key that any error policy allows."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Settings of one member of a group, or of a query without a group."""

    group: str  # empty without a group
    capacity: int = 1  # the member's share of the group's work
    session_ms: int = 45_000
    longest_ms: int = 300_000
    sharing: bool = True  # whether this member may get parts of partitions
    demanding: bool = False  # whether its user demands parts: refused if policies forbid it
    batch_budget_ms: int = 10_000  # the time budget of a batch; 0: none
    filter: RecordFilter = EVERYTHING
    early_ends: bool = False  # whether tasks may end slices before their planned ends
    max_lead_ms: int | None = None  # the most record time between two lanes; None: any
    per_key: bool = False  # whether the user's function gets the records of one key at a time
    concurrency: int = 1  # keys at once inside a task, where the user's function runs in `read`
    assignors: tuple[Assignor, ...] = (Grouped(),)  # by preference
    listener: OwnershipListener = field(default_factory=OwnershipListener)
    retention_ms: int = 10_080 * 60_000
    max_outage_ms: int = 60_000
    max_individual_commits: int = MAX_INDIVIDUAL_COMMITS  # that a partition may hold (code 92)
    on_error: bool = False  # whether tasks may defer keys on which the user's function failed
    longest_delay_ms: int = LONGEST_DELAY_MS  # of a failing key, before its next attempt
    max_deferred_keys: int = MAX_DEFERRED_KEYS  # failing keys that a partition may have
    max_ranges: int = MAX_RANGES  # collected offset ranges at which an acknowledger commits by itself
    growth_grace_ms: int = 600_000  # the wait of new partitions for older ones after a growth; 0: none
    fail_on_data_loss: bool = True
    standby: bool = False  # whether it owns nothing while enough others work (rule: standby-takes-over)
    ordering: Literal["key", "none"] = "key"  # of the group (rule: one-ordering)
    unread_batches: bool = False  # whether a batch that the sink completed without reading it counts as done
    replay_acknowledged: bool = True  # whether a replay has the records again that were acknowledged
    on_state_loss: Literal["fail", "earliest"] = "fail"
    starting_option: str | None = None  # the user's option that names the first positions, for messages
    tokens: Callable[[int], str] = secrets.token_hex  # random hex digits of so many bytes; a simulation has its own
    watch: Callable[[Any], None] | None = None  # called with each state of the member; for tests and the simulation

    @property
    def commit_fields(self) -> dict[str, str]:
        """The fields of the member in Redis that the Commit API reads."""
        return {
            "max.individual.commits": str(self.max_individual_commits),
            "max.num.ranges.to.commit": str(self.max_ranges),
        }
