"""A record on which the user's function fails, and which holds up its key alone. Pure.

    hash     |####x....|        x  the failing record: the position of its hash stays here
    others   |#########|           all other hashes go on

It is deferred: tried again once its time has come. Or it is parked: unread until an operator releases it.
The position of the hash decides what is unread; this value only says when and how often (rule: position-holds-the-key).
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from coordinator.errors import StateFormatError
from coordinator.values.ranges import NUMBER, HashRange, is_number
from coordinator.values.subscription import TopicPartition

ERROR_CHARACTERS, MESSAGE_CHARACTERS = 100, 200

_FIELD = re.compile(rf"(\S+) ({NUMBER}) ([0-9a-f]{{16}})")
_VALUE = re.compile(rf"(deferred|parked) ({NUMBER}) ({NUMBER}) ({NUMBER}) (\S*) (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class FailingRecord:
    """One record of one key hash."""

    tp: TopicPartition
    key_hash: int
    offset: int  # of the record
    attempts: int  # so far, in all batches
    next_ms: int  # since 1970: no attempt before it
    parked: bool = False  # no attempt until it is released
    error: str = ""  # the exception's class
    message: str = ""

    @property
    def hashes(self) -> HashRange:
        """Its hash as a range."""
        return HashRange(self.key_hash, self.key_hash)

    @property
    def field(self) -> str:
        """Its name in Redis: one failing record for each hash."""
        return f"{self.tp.topic} {self.tp.partition} {self.key_hash:016x}"

    @property
    def text(self) -> str:
        """Its value in Redis: less than 1 KB, without half surrogates, which Redis does not take."""
        error = "".join(self.error.split())[:ERROR_CHARACTERS]
        text = f"{self.state} {self.offset} {self.attempts} {self.next_ms} {error} {self.message[:MESSAGE_CHARACTERS]}"
        return text.encode(errors="replace").decode()

    @property
    def state(self) -> str:
        """Its state in Redis, for people and for programs."""
        return "parked" if self.parked else "deferred"

    @classmethod
    def parse(cls, field: str, value: str) -> "FailingRecord":
        """The record of its two texts; raises `StateFormatError`."""
        where, what = _FIELD.fullmatch(field), _VALUE.fullmatch(value)
        if not (where and what and all(map(is_number, what.group(2, 3, 4)))):
            expected = "deferred|parked <offset> <attempts> <ms> <error> <message>"
            raise StateFormatError(f"failing record {field!r} is {value!r}, not {expected}")
        tp, key_hash = TopicPartition(where[1], int(where[2])), int(where[3], 16)
        numbers = int(what[2]), int(what[3]), int(what[4])
        return cls(tp, key_hash, *numbers, what[1] == "parked", what[5], what[6])


def released(records: Iterable[FailingRecord], tp: TopicPartition | None, key_hash: int | None) -> list[FailingRecord]:
    """The records that an operator releases: parked ones of the group or of a partition, or the one of a key."""
    if key_hash is not None:
        return [r for r in records if (r.tp, r.key_hash) == (tp, key_hash)]
    return [r for r in records if r.parked and tp in (None, r.tp)]


@dataclass(frozen=True, slots=True)
class Failures:
    """The calls of the user's function that failed in a task or in a batch, as far as they have a result.

    And whether the time of its reading shows nothing: it may have waited for a broker.
    """

    failing: tuple[FailingRecord, ...] = ()  # keys that got nothing from these records on
    skipped: int = 0  # records that the task left out
    dead_lettered: int = 0  # records that it wrote to the dead-letter topic
    kafka_away: bool = False

    def __add__(self, other: "Failures") -> "Failures":
        return Failures(
            self.failing + other.failing,
            self.skipped + other.skipped,
            self.dead_lettered + other.dead_lettered,
            self.kafka_away or other.kafka_away,
        )


NO_FAILURES = Failures()


def deferred_and_parked(records: Collection[FailingRecord]) -> tuple[int, int]:
    """How many keys are tried again, and how many wait for a release."""
    parked = sum(record.parked for record in records)
    return len(records) - parked, parked
