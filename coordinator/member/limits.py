"""Limits of Spark on one batch. A module of its own, so that a worker that unpickles a reader imports little."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Spark's limits for one batch; None: no limit."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = 900_000
    everything: bool = False  # Trigger.Once: one batch reads all unread records


NO_LIMITS = Limits()
