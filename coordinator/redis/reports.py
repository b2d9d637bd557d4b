"""The verbs of reports: lanes of members, and batches that ended (rule: reports-decide-nothing)."""

from collections.abc import Iterable

from coordinator.redis.calls import Answer, Caller, ScriptCalls, answer
from coordinator.redis.client import RedisClient
from coordinator.redis.errors import sound
from coordinator.redis.keys import GroupKeys
from coordinator.reports.lane_lines import BatchLine, LaneLine, lines_text

MOST_BATCHES = 1_000
"""The number of batches in the history, of all members together, roughly."""


class ReportVerbs(ScriptCalls):
    """The reports of a member, for people and programs."""

    def report(self, caller: Caller, lanes: Iterable[LaneLine], slow_percent: int) -> Answer[None]:
        """Replace the member's lane lines. Also write which percentage of its slots slow lanes take."""
        k = self._keys
        keys = [k.meta, k.leases, k.member(caller.member), k.lanes]
        return answer(self._run("report", caller, keys, lines_text(lanes), str(slow_percent)), None)

    def tell_batch(self, line: BatchLine) -> None:
        """Add a batch to the group's history."""
        self._tell(self._keys.history, MOST_BATCHES, line.fields)


@sound
def last_batches(client: RedisClient, group: str, count: int) -> list[tuple[int, BatchLine]]:
    """The latest batches of a group's history, oldest first, each with its time (ms since 1970)."""
    with client.reading() as redis:
        found = redis.xrevrange(GroupKeys(group).history, count=count)
    return [(int(at.partition("-")[0]), BatchLine.of(fields)) for at, fields in reversed(found)]
