"""What a group's service is told, as one value. Durations in milliseconds."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Settings of one member of a group (spec 4.2, 6, 7)."""

    group: str
    session_ms: int = 45_000
    heartbeat_ms: int = 3_000
    retention_ms: int = 10_080 * 60_000
    max_outage_ms: int = 60_000
    fail_on_data_loss: bool = True
    on_state_loss: Literal["fail", "earliest"] = "fail"
    tokens: Callable[[int], str] = secrets.token_hex  # random hex digits of so many bytes; a simulation gives its own
