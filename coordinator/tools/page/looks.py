"""Looks at groups for the page: at each group at most once a second, however many browsers ask.

Many threads of the server call it; one lock guards it. It keeps the lag over time of groups that somebody asks for.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock

from coordinator.errors import CoopKafkaError
from coordinator.redis.client import RedisClient
from coordinator.redis.events import last_events
from coordinator.redis.group_state import GroupEvent
from coordinator.redis.snapshot import list_groups
from coordinator.tools.operations.group_look import GroupLook, look_at
from coordinator.tools.operations.log_ends import PATIENCE_S, EndsOfKafka
from coordinator.tools.operations.views import total_lag

FRESH_S = 1.0
"""A look serves all questions for so long."""

EVENTS, POINTS = 100, 900
"""The last events of a group that are read; and the points of its lag that are kept, one for each look."""


@dataclass(slots=True)
class Looks:
    """See the module. `ends_of` is None without brokers; `clock` gives seconds that only grow."""

    client: RedisClient
    ends_of: EndsOfKafka | None = None
    clock: Callable[[], float] = time.monotonic
    _lock: Lock = field(default_factory=Lock)
    _known: dict[str, tuple[float, GroupLook]] = field(default_factory=dict)
    _lags: dict[str, deque[tuple[int, int]]] = field(default_factory=dict)

    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return list_groups(self.client)

    def of(self, group: str) -> GroupLook:
        """The group, at most a second old. Raises `UnknownGroupError`, `StateFormatError`, `RedisUnavailableError`."""
        with self._lock:
            at, look = self._known.get(group, (float("-inf"), None))
            if look is None or self.clock() - at >= FRESH_S:
                look = self._read(group)
                self._known[group] = self.clock(), look
            return look

    def lags(self, group: str) -> list[tuple[int, int]]:
        """The lag at each look so far: ms since 1970 by the clock of Redis, and offsets."""
        with self._lock:
            return list(self._lags.get(group, ()))

    def events(self, group: str) -> list[GroupEvent]:
        """The last events, the oldest first."""
        return last_events(self.client, group, EVENTS)

    def _read(self, group: str) -> GroupLook:
        look = self._with_ends(look_at(self.client, group))
        if (lag := total_lag(look.view.partitions)) is not None:
            self._lags.setdefault(group, deque(maxlen=POINTS)).append((look.state.now_ms, lag))
        return look

    def _with_ends(self, look: GroupLook) -> GroupLook:
        if self.ends_of is None:
            return look
        try:
            return look.with_ends(self.ends_of(look.state.segments))
        except TimeoutError:
            return replace(look, trouble=f"Kafka does not answer within {PATIENCE_S:g} s")
        except CoopKafkaError as error:
            return replace(look, trouble=error.headline)
