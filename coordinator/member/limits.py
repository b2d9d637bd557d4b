"""Limits that Spark passes for one batch."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of Spark's for one batch; None: no limit."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = 900_000
    everything: bool = False  # Trigger.Once: one batch reads all there is, whatever it costs
