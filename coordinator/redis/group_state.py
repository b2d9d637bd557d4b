"""The state of a group in Redis, as values: for the CLI and the views."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from coordinator.assignment.assignment_text import Ranges
from coordinator.errors import StateFormatError
from coordinator.errors.quoting import quoted
from coordinator.progress.growth import PARTITIONS_MAX, Growth
from coordinator.progress.segments import Rectangle
from coordinator.progress.slices import Slice
from coordinator.redis.lane_lines import LaneLine
from coordinator.values.ranges import HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

SCHEMA = "1"
"""The schema number of the state in Redis; `lua/shared/prelude.lua` has it too (rule: schema-number)."""

ORDERINGS = ("key", "partition", "none")
"""In `meta`: the ordering of a group; without the field it is `key`."""

LONGEST_BATCH = "longest.batch.ms"
"""The field of a member: the time after which its batch counts as hung."""

BATCH_BUDGET = "batch.time.budget"
"""The field of a member: the time budget of a batch in ms; 0 for none."""

BACKLOG_MS, LOAD_PERCENT = "backlog_ms", "load_percent"
"""The fields of a member: slot time of its unread records, and of those that arrive, in percent of one slot."""

DEAD_LETTERS = "dead_letters"
"""The field of a member: the topic to which its tasks write dead letters. Absent without one."""

PINNED = "pinned"
"""In `meta`: the protocol of a group of pinned members; `lua/shared/pinned.lua` has it too. Of a member: the field with
the ranges that it names."""

STANDBY, WORKING = "standby", "working"
"""The roles of a member that wants to be a standby; `lua/shared/standbys.lua` has them too."""

_TOPIC = re.compile(r"([A-Za-z0-9._-]{1,64}) ([1-9][0-9]{0,9})")


def check_schema(meta: Mapping[str, str]) -> None:
    """Raise `StateFormatError` if a group's `meta` is of another schema."""
    if (schema := meta.get("schema", "")) != SCHEMA:
        raise other_schema(schema)


def other_schema(schema: str) -> StateFormatError:
    """The refusal of state in Redis that another version wrote."""
    return StateFormatError(
        f"the group's state in Redis is of schema {schema!r}, this coop-kafka reads schema {SCHEMA!r}",
        "run a coop-kafka of the version that wrote it, or a newer one",
    )


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A topic as the group recorded it."""

    id: str
    partitions: int

    @classmethod
    def parse(cls, topic: str, text: str) -> Self:
        """The topic of a text in Redis; raises `StateFormatError`."""
        found = _TOPIC.fullmatch(text)
        if not found or int(found[2]) > PARTITIONS_MAX:
            expected = f"<topic id> <partition count, at most {PARTITIONS_MAX}>"
            raise StateFormatError(f"topic {topic!r} is recorded as {quoted(text)}, not {expected}")
        return cls(found[1], int(found[2]))

    def __str__(self) -> str:
        return f"{self.id} {self.partitions}"


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """One entry of the events stream."""

    id: str  # Redis' own, `<ms since 1970>-<number>`
    kind: str
    member: str  # empty if no member caused it
    why: str
    ranges: str = ""  # key ranges whose ownership changed

    @property
    def at_ms(self) -> int:
        """When it was written, in ms since 1970 by the clock of Redis."""
        return int(self.id.partition("-")[0])


class Handed(NamedTuple):
    """A slice of a group without order, as Redis has it (rule: hand-out)."""

    offsets: OffsetRange
    epoch: str  # lane epoch; void if it is of another nonce than the group's
    member: str


@dataclass(frozen=True, slots=True)
class GroupState:
    """One look at a group. It is no transaction: members may write between two of its parts."""

    now_ms: int  # Redis TIME
    meta: Mapping[str, str]
    leases_ms: Mapping[str, int]  # member -> lease end
    members: Mapping[str, Mapping[str, str]]
    topics: Mapping[str, KnownTopic]
    segments: Mapping[TopicPartition, tuple[tuple[HashRange, int], ...]]  # with positions
    owners: Mapping[TopicPartition, tuple[tuple[HashRange, str, str], ...]]  # with lane epoch and member
    stable: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]  # of the logs, at the last look at each topic
    ics: Mapping[TopicPartition, tuple[Rectangle, ...]] = field(default_factory=dict)
    handed: Mapping[TopicPartition, tuple[Handed, ...]] = field(default_factory=dict)
    hung_ms: Mapping[str, int] = field(default_factory=dict)  # member -> when its batch counts as hung
    leaving: frozenset[str] = frozenset()
    standbys: Mapping[str, str] = field(default_factory=dict)  # member that wants to be a standby -> its role
    assignment: Mapping[str, Ranges] = field(default_factory=dict)
    policy: Mapping[str, str] = field(default_factory=dict)
    growths: tuple[Growth, ...] = ()
    ends_ms: Mapping[str, int] = field(default_factory=dict)  # topic -> time of that look, by Redis TIME
    lanes: Mapping[str, tuple[LaneLine, ...]] = field(default_factory=dict)  # as each member reported them
    working: Mapping[str, tuple[Slice, ...]] = field(default_factory=dict)  # that tasks of a member are at

    @property
    def ordering(self) -> str:
        """One of `ORDERINGS`."""
        return self.meta.get("ordering", "key")

    @property
    def reset_epoch(self) -> int:
        """0, or the time of the last reset."""
        return int(self.meta.get("reset_epoch", "0"))

    @property
    def dead_letter_topics(self) -> list[str]:
        """The topics to which members write dead letters, sorted."""
        return sorted({fields[DEAD_LETTERS] for fields in self.members.values() if fields.get(DEAD_LETTERS)})

    def in_force(self, epoch: str) -> bool:
        """Whether a lane epoch is of the group's nonce; otherwise it is void."""
        return epoch.partition(".")[0] == self.meta.get("nonce")
