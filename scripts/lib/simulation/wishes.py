"""What the user of one application wished: drawn at random, so that every option meets every fault."""

from dataclasses import dataclass
from random import Random

from coordinator.pace import Limits
from coordinator.planning import Cutting


@dataclass(frozen=True, slots=True)
class Wishes:
    """Options of one query, and habits of the Spark that runs it."""

    cutting: Cutting
    limits: Limits
    available_now: bool
    interval_ms: int  # of the trigger
    initial_calls: int  # Spark calls initialOffset and partitions once or twice
    on_state_loss: str

    @classmethod
    def drawn(cls, random: Random, *, available_now: bool) -> "Wishes":
        """Wishes of a query that may end by itself."""
        lanes, max_records = random.choice((None, None, 1, 3, 4)), random.choice((None, None, None, 2))
        return cls(
            Cutting(random.randint(1, 4), lanes, random.choice((None, None, 5)), max_records),
            Limits(random.choice((None, 3, 8)), random.choice((None, None, 3)), 2_000),
            available_now,
            random.choice((0, 0, 0, 500, 9_000)),
            random.choice((1, 2)),
            random.choice(("fail", "earliest")),
        )
