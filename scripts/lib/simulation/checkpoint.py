"""A checkpoint folder, and what its operator has learned from the drivers that failed on it."""

from dataclasses import dataclass, field

from simulation.promises import Attempt


@dataclass(slots=True)
class Checkpoint:
    """A checkpoint folder, which outlives its drivers."""

    name: str
    wal: list[str] = field(default_factory=list)
    committed: set[int] = field(default_factory=set)
    attempts: dict[int, Attempt] = field(default_factory=dict)
    shared: bool = False  # two drivers have had it at once: Spark promises nothing then but to end one of them
    lost: bool = False  # a driver found that nothing proves a position: its operator goes on at earliest
    taken: int = 0  # batch ids from 0 on that the sink has from another checkpoint: it skips them
    skipped: bool = False  # the sink skipped one of them: its operator gives the query an output of its own
    aged: bool = False  # a driver found that records are gone: its operator goes on without them
