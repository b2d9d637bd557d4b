"""Events, lanes and batches in Redis (rule: reports-decide-nothing)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.assignment.assignment_text import Ranges
from coordinator.redis.keys import GroupKeys
from coordinator.redis.lane_lines import BatchLine, LaneLine, lines_text
from coordinator.redis.replies import Answer, Caller
from coordinator.redis.script_texts import flat
from coordinator.redis.verb import nothing, sound, verb

if TYPE_CHECKING:
    from coordinator.redis.calls import ScriptCalls
    from coordinator.redis.client import RedisClient

MOST_BATCHES = 1_000
"""The number of batches in the history, of all members together, roughly."""
_BATCH = verb("append", "meta entries=history", "most fields", nothing)
_REPORT = verb("report", "meta leases member lanes", "lines slow_percent backlog_ms load_percent", nothing)


@dataclass(frozen=True, slots=True)
class RedisReports:
    """The reports of a member, for people and programs."""

    calls: "ScriptCalls"

    def event(self, kind: str, why: str, member: str = "", ranges: Ranges | None = None) -> None:
        """Add an event to the events stream."""
        self.calls.event(kind, why, member, ranges)

    def batch(self, line: BatchLine) -> None:
        """Add a batch to the group's history."""
        self.calls.run(_BATCH, most=str(MOST_BATCHES), fields=flat(line.fields))

    def lanes(
        self, caller: Caller, lines: Sequence[LaneLine], slow_percent: int, backlog_ms: int = 0, load_percent: int = 0
    ) -> Answer[None]:
        """Replace the member's lane lines. Also write which percentage of its slots slow lanes take.

        `backlog_ms` is the slot time of all its unread records, `load_percent` that of arriving ones, of one slot.
        """
        return self.calls.ask(
            _REPORT,
            caller,
            lines=lines_text(lines),
            slow_percent=str(slow_percent),
            backlog_ms=str(backlog_ms),
            load_percent=str(load_percent),
        )


@sound
def last_batches(client: "RedisClient", group: str, count: int) -> list[tuple[int, BatchLine]]:
    """The latest batches of a group's history, oldest first, each with its time (ms since 1970)."""
    with client.reading() as redis:
        found = redis.xrevrange(GroupKeys(group).history, count=count)
    return [(int(at.partition("-")[0]), BatchLine.of(fields)) for at, fields in reversed(found)]
