"""The texts of an assignment and of a member's report to assignors in Redis. Pure."""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache

from coordinator.assignment.assignors.assignor import Subscriber
from coordinator.assignment.policies import MEMBER_POLICY
from coordinator.assignment.protocols import Preferences, preferences_of, preferences_text
from coordinator.errors import StateFormatError
from coordinator.values.hash_map import overlap
from coordinator.values.ranges import WHOLE, HashRange, is_number
from coordinator.values.subscription import TopicPartition

_REMEDY = "restart the query of that member: it writes this again; coop-kafka describe shows its host and process"
Ranges = Mapping[TopicPartition, tuple[HashRange, ...]]


def ranges_text(ranges: Ranges) -> str:
    """JSON of one member's ranges: topic -> partition -> list of `lo-hi`."""
    body: dict[str, dict[str, list[str]]] = {}
    for tp, hashes in sorted(ranges.items()):
        body.setdefault(tp.topic, {})[str(tp.partition)] = [str(h) for h in hashes]
    return json.dumps(body, separators=(",", ":"))


@lru_cache(maxsize=4)  # a member reads the same text several times a second
def ranges_of(text: str) -> Ranges:
    """The ranges of that JSON; none for an empty text. Raises `StateFormatError`."""
    try:
        return {
            TopicPartition(topic, _number(partition)): _ascending(tuple(HashRange.parse(h) for h in hashes))
            for topic, partitions in (json.loads(text) if text else {}).items()
            for partition, hashes in partitions.items()
        }
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise StateFormatError(f"{text[:80]!r} is not an assignment") from None


def _ascending(hashes: tuple[HashRange, ...]) -> tuple[HashRange, ...]:
    if overlap(hashes):
        raise StateFormatError(f"the assignment has hash ranges that overlap or do not ascend: {hashes[0]} and others")
    return hashes


def event_text(ranges: Ranges) -> str:
    """Key ranges in an entry of the events stream: `orders-0 whole, orders-1 <lo>-<hi>`."""
    return ", ".join(f"{tp} {'whole' if h == WHOLE else h}" for tp, hashes in sorted(ranges.items()) for h in hashes)


def _number(text: str) -> int:
    if not is_number(text):
        raise ValueError
    return int(text)


def fields_of(topics: frozenset[str], capacity: int, protocols: Preferences, *, sharing: bool) -> dict[str, str]:
    """The fields of a member's hash that assignors read."""
    return {
        "topics": ",".join(sorted(topics)),
        "capacity": str(capacity),
        MEMBER_POLICY: "true" if sharing else "false",
        "protocols": preferences_text(protocols),
    }


def seniority(members: Iterable[Subscriber]) -> dict[str, Preferences]:
    """The assignors of each member, in the order in which they joined."""
    ordered = sorted(members, key=lambda m: (_joined_at(m), m.member))
    return {m.member: _preferences(m) for m in ordered}


def _preferences(member: Subscriber) -> Preferences:
    try:
        return preferences_of(member.metadata.get("protocols", ""))
    except StateFormatError as error:
        raise StateFormatError(f"of the assignors of member {member.member}, {error.what}", _REMEDY) from None


def _joined_at(member: Subscriber) -> int:
    text = member.metadata.get("joined_at", "")
    if not is_number(text):
        raise StateFormatError(f"member {member.member} joined at {text!r}, not a time in ms", _REMEDY)
    return int(text)


def subscriber(member: str, fields: Mapping[str, str]) -> Subscriber:
    """The member as an assignor sees it, from the fields of its hash."""
    topics = frozenset(filter(None, fields.get("topics", "").split(",")))
    capacity = fields.get("capacity", "")
    if not (is_number(capacity) and int(capacity)):
        raise StateFormatError(f"member {member} has capacity {capacity!r}, not a whole number above 0", _REMEDY)
    sharing = fields.get(MEMBER_POLICY, "true") != "false"
    return Subscriber(member, int(capacity), topics, sharing, metadata=dict(fields))
