"""Copies a group to a text and back; an old copy is loaded by nothing else. Needs Redis only."""

from coordinator import verdicts
from coordinator.group_state import check_schema
from coordinator.operations.copied_state import is_copied
from coordinator.operations.copies import GroupCopy
from coordinator.operations.refusals import operator, refusal, refused
from coordinator.redis.client import RedisClient
from coordinator.redis.operator import OperatorVerbs


def backup(client: RedisClient, group: str) -> GroupCopy:
    """A copy of the group as it is at one moment, members at work or not; `UnknownGroupError` if there is none."""
    store = OperatorVerbs.of_group(client, group)
    keys = store.copied(is_copied)
    if "meta" not in keys:
        raise refusal(group, verdicts.Absent())
    check_schema(keys["meta"])
    return GroupCopy(group, store.now_ms(), keys)


def restore(client: RedisClient, copy: GroupCopy) -> None:
    """Replace all there is of the group by the copy; `GroupBusyError` while a member's lease runs.

    `StateFormatError` if the copy is not sound: then the group stays as it is.

    The first query that starts then finds a loss of state: it raises positions to what Kafka's group of that name, and
    its checkpoint, prove to be done since.
    """
    copy.check()
    with refused(copy.group):
        OperatorVerbs.of_group(client, copy.group).restore(copy.keys, f"by {operator()}: a copy of {copy.taken_ms} ms")
