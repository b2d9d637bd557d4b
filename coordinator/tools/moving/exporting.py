"""Writes a group's stable offsets to a plain group of Kafka, in the command `coop-kafka`. Needs Redis and Kafka."""

from dataclasses import dataclass
from typing import Annotated

from coordinator.errors import ConflictingOptionsError, GroupBusyError
from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import GroupState
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.snapshot import read_group
from coordinator.tools.fields import Means, PartitionNumber, TopicField
from coordinator.tools.operations.gaps import progress
from coordinator.tools.operations.operations import idle
from coordinator.values.log import Log
from coordinator.values.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class Exported:
    """The offset of one partition for a plain consumer."""

    topic: TopicField
    partition: PartitionNumber
    offset: Annotated[int, Means("The stable offset.", "OFFSET")]
    reach: Annotated[int, Means("The end of the processed records.", "READ AGAIN UP TO")]


def planned(client: RedisClient, group: str, to: str) -> tuple[Exported, ...]:
    """The offsets. Members may live. Raises `UnknownGroupError`, `ConflictingOptionsError`."""
    _must_be_another(group, to)
    return _offsets(read_group(client, group))


def _must_be_another(group: str, to: str) -> None:
    if to == group:
        raise ConflictingOptionsError(
            f"Kafka's group {to!r} has the stable offsets of the group of the same name already",
            "pass another name, or let the plain consumers use this one once all queries are stopped",
        )


def export(client: RedisClient, log: Log, group: str, to: str) -> tuple[Exported, ...]:
    """Commit the offsets. Raises as `planned`, and `GroupBusyError` while members live, or consumers of the other."""
    _must_be_another(group, to)
    found = _offsets(idle(client, OperatorVerbs.of_group(client, group), group))
    if not log.commit_group_offsets(to, {TopicPartition(e.topic, e.partition): (e.offset, "") for e in found}):
        raise GroupBusyError(f"Kafka's group {to!r} has active consumers", "stop them, then export again")
    return found


def _offsets(state: GroupState) -> tuple[Exported, ...]:
    return tuple(_exported(tp, offset, state) for tp, offset in sorted(state.stable.items()))


def _exported(tp: TopicPartition, stable: int, state: GroupState) -> Exported:
    return Exported(*tp, stable, max(stable, progress(state, tp).furthest))
