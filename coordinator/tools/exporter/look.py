"""Looks at all groups of a Redis and at the log ends of Kafka. Reads only.

An outage of either becomes a part of the look, and one line for people.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from coordinator.errors import CoopKafkaError, StoreError, UnknownGroupError
from coordinator.redis.client import RedisClient
from coordinator.redis.snapshot import list_groups, of_one_group, refusal
from coordinator.tools.exporter.samples import ExporterLook
from coordinator.tools.operations.group_look import GroupLook, look_at
from coordinator.tools.operations.log_ends import PATIENCE_S, EndsOfKafka, LogEnds
from coordinator.tools.operations.wanted_slots import DRAIN_S
from coordinator.values.subscription import TopicPartition


class Watcher:
    """Looks at each call of `look`. `warn` gets a line for each new trouble."""

    def __init__(
        self, client: RedisClient, ends_of: EndsOfKafka, warn: Callable[[str], None], drain_s: int = DRAIN_S
    ) -> None:
        self._client, self._ends_of, self._warn, self._drain_s = client, ends_of, warn, drain_s
        self._warned: dict[str, str] = {}

    def look(self) -> ExporterLook:
        """One look; never raises an error of Redis or Kafka."""
        began = time.monotonic()
        groups = self._groups()
        ends = self._ends({tp for look in (groups or {}).values() if look for tp in look.state.segments})
        current = {name: look and look.with_ends(ends or {}) for name, look in (groups or {}).items()}
        return ExporterLook(None if groups is None else current, ends, time.monotonic() - began, self._drain_s)

    def _groups(self) -> dict[str, GroupLook | None] | None:
        try:
            found = {name: self._group(name) for name in list_groups(self._client)}
        except UnknownGroupError:  # it has expired since it was listed
            return self._groups()
        except CoopKafkaError as error:
            self._tell("Redis", str(error))
            return None
        self._tell("Redis", next((look.refusal for look in found.values() if look and look.refusal), ""))
        return found

    def _group(self, name: str) -> GroupLook | None:
        """None for a damaged group."""
        try:
            look = look_at(self._client, name)
            found = replace(look, refusal=str(refusal(self._client, name) or ""))
        except StoreError as error:
            if not of_one_group(error):
                raise
            self._tell(f"group {name!r}", str(error))
            return None
        self._tell(f"group {name!r}", "")
        return found

    def _ends(self, partitions: Iterable[TopicPartition]) -> LogEnds | None:
        try:
            found = self._ends_of(partitions)
        except TimeoutError:
            self._tell("Kafka", f"no answer within {PATIENCE_S:g} s")
            return None
        except CoopKafkaError as error:
            self._tell("Kafka", str(error))
            return None
        self._tell("Kafka", "")
        return found

    def _tell(self, whom: str, trouble: str) -> None:
        """Warn once of a trouble, and once of its end."""
        if trouble != self._warned.get(whom, ""):
            self._warn(f"warning: {whom}: {trouble}" if trouble else f"{whom}: works again")
        self._warned[whom] = trouble
