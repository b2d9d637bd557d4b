"""The plan of a redrive: which dead letters go back to their topic, and which of them come too late. Pure.

    orders-0        k@17 failed   k@20   k@31        two later records of the key: delivered first
    redriven                                  k@40   a copy of k@17

The progress of a redrive is one position for each partition of the dead-letter topic: all dead letters of the group and
the topic before it are redriven. A redrive of one key leaves gaps: then ranges above the position are done too.

    dead letters    a b a c a b        of one group and one topic
    --key a         # . # . #          position 1, done 2-2 4-4
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from coordinator.errors import ConflictingOptionsError, StateFormatError
from coordinator.values.ranges import NUMBER
from coordinator.values.subscription import TopicPartition

MOST_TEXT = 4_000
"""Characters of the done ranges: Kafka takes 4,096 bytes of metadata (`offset.metadata.max.bytes`)."""

_RANGES = re.compile(rf"(?:{NUMBER}-{NUMBER}(?: {NUMBER}-{NUMBER})*)?")


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter of the group and the topic, without its content."""

    at: TopicPartition  # in the dead-letter topic
    offset: int
    source: TopicPartition
    source_offset: int
    key: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class RedriveProgress:
    """How far a partition of the dead-letter topic is redriven."""

    position: int
    done: tuple[tuple[int, int], ...] = ()  # closed ranges above the position

    @property
    def text(self) -> str:
        """The ranges, for the metadata of a commit."""
        return " ".join(f"{first}-{last}" for first, last in self.done)

    @classmethod
    def parse(cls, position: int, text: str) -> "RedriveProgress":
        """The progress of a commit; raises `StateFormatError`."""
        if not _RANGES.fullmatch(text):
            raise StateFormatError(f"the commit of a redrive has the metadata {text!r:.200}, not ranges of offsets")
        found = (pair.split("-") for pair in text.split())
        return cls(position, tuple((int(first), int(last)) for first, last in found))

    def has(self, offset: int) -> bool:
        """Whether a dead letter is redriven."""
        return offset < self.position or any(first <= offset <= last for first, last in self.done)


def after(letters: Sequence[int], done: Collection[int], end: int) -> RedriveProgress:
    """The progress where, of the dead letters at these ascending offsets before `end`, those in `done` are redriven."""
    left = [offset for offset in letters if offset not in done]
    if not left:
        return RedriveProgress(end)
    ranges: list[tuple[int, int]] = []
    open_range = False
    for offset in letters[bisect_left(letters, left[0]) :]:
        if offset in done:
            ranges[-1:] = [(ranges[-1][0], offset)] if open_range else [*ranges[-1:], (offset, offset)]
        open_range = offset in done
    return RedriveProgress(left[0], tuple(ranges))


@dataclass(frozen=True, slots=True)
class RedrivePlan:
    """The dead letters found, in offset order within each partition of the dead-letter topic."""

    letters: tuple[Letter, ...]  # to redrive
    of_topic: Mapping[TopicPartition, Sequence[int]]  # offsets of all of the group and topic, redriven or not
    before: Mapping[TopicPartition, RedriveProgress]
    ends: Mapping[TopicPartition, int]
    others: int  # of other groups or topics
    strange: int  # records that are no dead letters

    def progress(self, tp: TopicPartition, sent: set[int]) -> RedriveProgress:
        """The progress in a partition after these offsets were sent."""
        before, offsets = self.before[tp], self.of_topic.get(tp, ())
        done = sent | {offset for offset in offsets if before.has(offset)}
        return after(offsets, done, self.ends[tp])


def check_recordable(progress: RedriveProgress) -> None:
    """Raise an error for more gaps than a commit in Kafka may name."""
    if len(progress.text) > MOST_TEXT:
        raise ConflictingOptionsError(
            f"after this redrive of one key, {len(progress.done)} gaps would be left among the redriven records, more "
            "than a commit in Kafka can name",
            "redrive without --key, which leaves no gaps",
        )


@dataclass(slots=True)
class KeyOrder:
    """The records of one key that come after its first dead letter."""

    offsets: list[int]  # of its dead letters to redrive, ascending
    later: int = 0
    last_later: int = -1

    @property
    def late(self) -> int:
        """How many of its dead letters a later record of the key precedes."""
        return bisect_left(self.offsets, self.last_later)


class Order:
    """Counts the records of the source that no redrive can follow in order. A record without a key has no order."""

    def __init__(self, letters: Iterable[Letter]) -> None:
        self.keys: dict[tuple[TopicPartition, bytes], KeyOrder] = {}
        self._dead: set[tuple[TopicPartition, int]] = set()
        for letter in sorted(letters, key=lambda letter: (letter.source, letter.source_offset)):
            self._dead.add((letter.source, letter.source_offset))
            if letter.key is not None:
                self.keys.setdefault((letter.source, letter.key), KeyOrder([])).offsets.append(letter.source_offset)

    @property
    def starts(self) -> dict[TopicPartition, int]:
        """Where to begin to look in each partition: behind its first dead letter that has a key."""
        found: dict[TopicPartition, int] = {}
        for (tp, _), order in self.keys.items():
            found[tp] = min(order.offsets[0] + 1, found.get(tp, order.offsets[0] + 1))
        return found

    def see(self, tp: TopicPartition, offset: int, key: bytes | None) -> None:
        """A record of the source. Each is seen at most once, in offset order within its partition."""
        order = None if key is None else self.keys.get((tp, key))
        if order is not None and offset > order.offsets[0] and (tp, offset) not in self._dead:
            order.later += 1
            order.last_later = offset
