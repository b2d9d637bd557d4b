"""A task's wait for brokers that are away: its limit, the one line about it, and that there was one.

Runs in executor workers. Knows time and errors; sends nothing.
"""

import logging
from time import monotonic

from coordinator.errors import KafkaUnavailableError
from coordinator.kafka.connection import SHORTLY_S

_log = logging.getLogger(__name__)


class Patience:
    """How long a task waits, each time."""

    def __init__(self, max_outage_ms: int = 0) -> None:
        self.away = False
        """Whether a broker was away at any time: then the time of the task shows nothing of its records."""
        self._most_s = max_outage_ms / 1000
        self._told: float | None = None  # since when brokers are away in the outage that has a line

    def wait(self, error: KafkaUnavailableError, since: float, what: str) -> None:
        """No answer since then, and `what` waits. Logs it once it is no short outage; at the limit raises `error`."""
        self.away = True
        waited_s = monotonic() - since
        if waited_s >= self._most_s:
            raise error
        if waited_s >= SHORTLY_S and self._told != since:
            self._told = since
            _log.warning("%s; %s wait, for up to %.0f s", error.what, what, self._most_s)
