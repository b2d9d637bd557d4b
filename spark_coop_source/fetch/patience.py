"""A task's wait for brokers that are away: its limit, and the one line about it.

Runs in executor workers. Knows time and errors; sends nothing.
"""

import logging
from time import monotonic

from coordinator.errors import KafkaUnavailableError
from coordinator.kafka.connection import SHORTLY_S

_log = logging.getLogger(__name__)


class Patience:
    """How long something waits, named by `what`."""

    def __init__(self, max_outage_ms: int, what: str) -> None:
        self._most_s = max_outage_ms / 1000
        self._what = what
        self._told: float | None = None  # since when brokers are away in the outage that has a line

    def wait(self, error: KafkaUnavailableError, since: float) -> None:
        """No answer since then. Logs it once it is no short outage; raises `error` once it is too long."""
        waited_s = monotonic() - since
        if waited_s >= self._most_s:
            raise error
        if waited_s >= SHORTLY_S and self._told != since:
            self._told = since
            _log.warning("%s; %s wait, for up to %.0f s", error.what, self._what, self._most_s)
