"""A dead letter: a record that failed, with headers that name its origin and its failure. Pure.

    headers of the record, as they were | coop.topic .partition .offset .timestamp .group .error .message .attempts

The eight headers come last, in this order. So they can be taken off again, whatever the record's own headers are.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from coordinator.values.ranges import NUMBER
from coordinator.values.subscription import TopicPartition

MESSAGE_CHARACTERS = 1_000
"""A longer message of an exception is cut. A record and its headers share one limit of size in Kafka."""

NO_TIME = -1
"""The timestamp of a record without one, as in Kafka."""

HEADERS = (
    "coop.topic",
    "coop.partition",
    "coop.offset",
    "coop.timestamp",
    "coop.group",
    "coop.error",
    "coop.message",
    "coop.attempts",
)
"""The headers that a dead letter adds. Numbers are decimal, texts UTF-8, the timestamp is in ms since 1970."""

_NUMBERS = (1, 2, 3, 7)  # in HEADERS
_NUMBER = re.compile(rf"-1|{NUMBER}")

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A record of a topic, whole. `repr` shows its place, not its content."""

    tp: TopicPartition
    offset: int
    timestamp_ms: int  # or NO_TIME
    key: bytes | None = field(repr=False)
    value: bytes | None = field(repr=False)
    headers: tuple[Header, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        """Its place."""
        return f"{self.tp} offset {self.offset}"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record, and the reason why it is in the dead-letter topic."""

    record: SourceRecord
    group: str  # empty: it was read without a group
    error: str  # the exception's class
    message: str
    attempts: int

    @property
    def headers(self) -> tuple[Header, ...]:
        """The record's own headers, then the eight of `HEADERS`."""
        r = self.record
        numbers = r.tp.partition, r.offset, r.timestamp_ms
        message = self.message[:MESSAGE_CHARACTERS]
        values = (r.tp.topic, *numbers, self.group, self.error, message, self.attempts)
        texts = (str(value).encode(errors="replace") for value in values)  # a message may hold half surrogates
        return (*r.headers, *zip(HEADERS, texts, strict=True))

    @classmethod
    def parse(cls, key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> "DeadLetter | None":
        """The dead letter with these fields; None if the last eight headers are not those of one."""
        own, added = tuple(headers[: -len(HEADERS)]), headers[-len(HEADERS) :]
        if tuple(name for name, _ in added) != HEADERS:
            return None
        texts = [None if text is None else text.decode(errors="replace") for _, text in added]
        known = [text for text in texts if text is not None]
        if len(known) < len(HEADERS) or not all(_NUMBER.fullmatch(known[n]) for n in _NUMBERS):
            return None
        topic, partition, offset, timestamp, group, error, message, attempts = known
        record = SourceRecord(TopicPartition(topic, int(partition)), int(offset), int(timestamp), key, value, own)
        return cls(record, group, error, message, int(attempts))
