"""What a group's service is told, as one value. Durations in milliseconds."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from coordinator.assignors.assignor import Assignor
from coordinator.assignors.grouped import Grouped


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Settings of one member of a group (spec 4.2, 6, 7)."""

    group: str
    capacity: int = 1  # how much of the group's work this member wants
    session_ms: int = 45_000
    longest_ms: int = 300_000
    assignor: Assignor = field(default_factory=Grouped)
    heartbeat_ms: int = 3_000
    retention_ms: int = 10_080 * 60_000
    max_outage_ms: int = 60_000
    fail_on_data_loss: bool = True
    on_state_loss: Literal["fail", "earliest"] = "fail"
    tokens: Callable[[int], str] = secrets.token_hex  # random hex digits of so many bytes; a simulation gives its own
