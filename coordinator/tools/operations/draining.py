"""Drains members: others get their ranges between two batches (rule: drain-hands-over).

Runs in the command `coop-kafka`.
"""

import time
from collections.abc import Collection

from coordinator.errors import ConflictingOptionsError, GroupBusyError
from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import PINNED, GroupState
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.snapshot import read_group
from coordinator.tools.operations.refusals import operator, refused

_POLL_S = 0.2


def chosen(state: GroupState, member: str | None, host: str | None) -> tuple[str, ...]:
    """The live members with this id, or on this host. Raises `ConflictingOptionsError` where none can be drained."""
    live = {name: state.members.get(name, {}) for name, end_ms in state.leases_ms.items() if end_ms >= state.now_ms}
    found = tuple(sorted(m for m, fields in live.items() if member == m or (host and fields.get("host") == host)))
    if any(PINNED in live[m] for m in found):
        raise ConflictingOptionsError(
            f"{found[0]} is pinned to its ranges, so no other member can get them",
            "stop its query, and start another one with the same ranges",
        )
    if found and state.ordering == "none":
        raise ConflictingOptionsError(
            f"{found[0]} owns no ranges, because its group has no order", "stop its query: the others continue"
        )
    return found


def drain(store: OperatorVerbs, members: Collection[str]) -> None:
    """Make these members standbys. Raises `GroupBusyError` if no other one works, or the group recovers."""
    group = store.calls.keys.group
    with refused(group):
        _, others = store.drain(members, f"by {operator()}: other members get its ranges")
    if not others:
        raise _nobody_else(group)


def owned(group: str, state: GroupState, members: Collection[str], working: Collection[str]) -> int:
    """The number of ranges that would be handed over. Raises `GroupBusyError` as `drain` would.

    `working`: the working members of the group.
    """
    if not set(working).difference(members):
        raise _nobody_else(group)
    return _ranges_of(members, state)


def _ranges_of(members: Collection[str], state: GroupState) -> int:
    return sum(owner in members for of_partition in state.owners.values() for _, _, owner in of_partition)


def _nobody_else(group: str) -> GroupBusyError:
    return GroupBusyError(
        f"group {group!r} has no other working member, so nobody would read the ranges",
        "start another query of the group first",
    )


def handed_over(client: RedisClient, group: str, members: Collection[str], seconds: float) -> bool:
    """Wait until these members own nothing; False if that takes longer than `seconds`."""
    deadline = time.monotonic() + seconds
    while _ranges_of(members, read_group(client, group)):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True
