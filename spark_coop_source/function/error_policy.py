"""What follows a failure of the user's function: the checked value of `OnError`. Pure.

Travels with the function from the options to the tasks.
"""

from dataclasses import dataclass, field
from typing import Literal, get_args

Then = Literal["fail", "park", "dead_letter", "skip"]
THENS: tuple[Then, ...] = get_args(Then)
"""What follows the last attempt: the query fails; the key waits; the record goes to a topic, or is left out."""


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """Attempts, back-off, and what follows the last attempt. Times are milliseconds."""

    attempts: int = 5  # of one record, in all batches
    backoff_ms: int = 200
    backoff_max_ms: int = 300_000
    then: Then = "fail"
    topic: str | None = None  # of dead letters
    retry_on: tuple[str, ...] | None = field(default=None, repr=False)  # texts for `user_function.loaded`; None: all
    fail_on: tuple[str, ...] = field(default=(), repr=False)
    group: str = ""  # of the query: dead letters name it

    def delay_ms(self, attempts: int, chance: float) -> int:
        """The time before the next attempt, after so many failed ones: doubled each time, less up to half of it.

        `chance`: from 0 to 1, so that keys that failed together are not tried together.

            backoff 200, chance 0: 200, 400, 800, ... up to backoff_max
        """
        doubled = self.backoff_ms << min(attempts - 1, 64)
        return round(min(doubled, self.backoff_max_ms) * (1 - chance / 2))
