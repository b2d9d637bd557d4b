"""How Redis holds an assignment, and what a member says of itself to assignors. Pure."""

import json
from collections.abc import Mapping

from coordinator.assignors.assignor import Subscriber
from coordinator.errors import StateFormatError
from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition

Ranges = Mapping[TopicPartition, tuple[HashRange, ...]]


def ranges_text(ranges: Ranges) -> str:
    """JSON of one member's ranges: topic -> partition -> list of `lo-hi`."""
    body: dict[str, dict[str, list[str]]] = {}
    for tp, hashes in sorted(ranges.items()):
        body.setdefault(tp.topic, {})[str(tp.partition)] = [str(h) for h in hashes]
    return json.dumps(body, separators=(",", ":"))


def ranges_of(text: str) -> Ranges:
    """The ranges of that JSON; none for an empty text. Raises `StateFormatError`."""
    try:
        return {
            TopicPartition(topic, _number(partition)): tuple(HashRange.parse(h) for h in hashes)
            for topic, partitions in (json.loads(text) if text else {}).items()
            for partition, hashes in partitions.items()
        }
    except (ValueError, AttributeError, TypeError):
        raise StateFormatError(f"{text[:80]!r} is not an assignment") from None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError
    return int(text)


def fields_of(topics: frozenset[str], capacity: int) -> dict[str, str]:
    """The fields of a member's hash that assignors read."""
    return {"topics": ",".join(sorted(topics)), "capacity": str(capacity)}


def subscriber(member: str, fields: Mapping[str, str]) -> Subscriber:
    """What an assignor may know of a member, from the member's hash."""
    topics = frozenset(filter(None, fields.get("topics", "").split(",")))
    capacity = fields.get("capacity", "1")
    if not (capacity.isascii() and capacity.isdecimal() and int(capacity)):
        raise StateFormatError(f"member {member} has capacity {capacity!r}, not a whole number above 0")
    return Subscriber(member, int(capacity), topics, metadata=dict(fields))
