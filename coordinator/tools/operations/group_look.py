"""A look at a group: what Redis holds of it, for commands, page and exporter, which watch it. Reads only."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from coordinator.plan.poison import Strike
from coordinator.progress.failing import FailingRecord
from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import GroupState
from coordinator.redis.lane_lines import BatchLine
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.reports import last_batches
from coordinator.redis.snapshot import read_group
from coordinator.tools.operations.log_ends import LogEnds, with_ends
from coordinator.tools.operations.views import GroupView, view

BATCHES = 100
"""The last batches of a group that are read: more than its members complete between two looks, in most groups."""

MemberBatch = tuple[int, BatchLine]
"""The time of a report, in ms since 1970 by the clock of Redis, and the batch."""


@dataclass(frozen=True)
class GroupLook:
    """A group at one moment, with log ends of Kafka where they are asked for."""

    group: str
    state: GroupState
    failing: Sequence[FailingRecord] = ()
    strikes: Sequence[Strike] = ()
    batches: Sequence[MemberBatch] = ()  # the last ones of all members, the oldest first
    refusal: str = ""  # why Redis takes no writes; empty if it does, or was not asked
    trouble: str = ""  # why the log ends are not those of Kafka; empty if they are, or Kafka was not asked

    @cached_property
    def view(self) -> GroupView:
        """Members and partitions."""
        return view(self.group, self.state)

    @cached_property
    def last_batches(self) -> dict[str, MemberBatch]:
        """The last batch of each member."""
        return {batch.member: (at_ms, batch) for at_ms, batch in self.batches}

    def with_ends(self, ends: LogEnds) -> Self:
        """The same group with these log ends of now."""
        return replace(self, state=with_ends(self.state, ends))


def look_at(client: RedisClient, group: str, *, batches: int = BATCHES, strikes: bool = True) -> GroupLook:
    """The group now. Raises `UnknownGroupError`, `StateFormatError` and other `StoreError`s.

    What a caller does not need is not read: damage there does not hide the rest.
    """
    state, poison = read_group(client, group), OperatorVerbs.of_group(client, group).poison
    last = last_batches(client, group, batches) if batches else ()
    return GroupLook(group, state, poison.failing(), poison.strikes() if strikes else (), last)
