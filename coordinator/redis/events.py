"""Reads a group's events stream: the latest entries, and new ones."""

from collections.abc import Iterator, Mapping

from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import GroupEvent
from coordinator.redis.keys import GroupKeys

WAIT_MS = 500
"""How long Redis waits for a new entry before it answers. Shorter than the time-out of the connection."""

AT_ONCE = 500
"""The most entries of one answer."""


def last_events(client: RedisClient, group: str, count: int) -> list[GroupEvent]:
    """The latest `count` events, the oldest first."""
    if not count:
        return []
    with client.reading() as redis:
        found = redis.xrevrange(GroupKeys(group).events, count=count)
    return [_event(at, fields) for at, fields in reversed(found)]


def follow(client: RedisClient, group: str, after: str) -> Iterator[list[GroupEvent]]:
    """Yield the events after that id (`$`: after now), for ever. No list is empty."""
    key = GroupKeys(group).events
    if after == "$":
        latest = last_events(client, group, 1)
        after = latest[-1].id if latest else "0-0"
    while True:
        with client.reading() as redis:
            found = redis.xread({key: after}, count=AT_ONCE, block=WAIT_MS)
        entries = [entry for _, of_stream in found for entry in of_stream]
        if entries:
            after = entries[-1][0]
            yield [_event(at, fields) for at, fields in entries]


def _event(at: str, fields: Mapping[str, str]) -> GroupEvent:
    return GroupEvent(
        at, fields.get("event", "?"), fields.get("member", ""), fields.get("why", ""), fields.get("ranges", "")
    )
