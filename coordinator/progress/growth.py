"""Partition growth: new partitions wait for older ones, so that keys in them stay in order (rule: growth-order). Pure.

                        t                  a sight: the end of the new partition first, then the ends of older ones
    older   |###########|....              its records of a moved key end at or before the end that was read after t
    newer       |~~~~~~~|                  may be read up to here once the older one is done up to there

This lasts for a grace, since producers refresh their metadata one by one. A member remembers some of its sights. After
the grace the group records the ends of the older partitions once. A hash that has passed them is free.

The group cannot know the producers' partitioner. So a hash of a new partition waits for that hash in every older
partition. This holds for growth to any number. Keys that move between older partitions wait for nothing.

A topic that grew from 1 to 4 partitions may have had 2 in between, unseen by the group, and its keys may have moved in
two steps. So such a growth counts as each growth to 4 that moves no key between older partitions: from 1, and from 2.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Self

from coordinator.errors import StateFormatError
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import NUMBER, WHOLE, HashRange
from coordinator.values.subscription import Topic, TopicPartition

OPEN = 2**31
"""The level of a hash that no older partition holds back."""

SIGHTS = 16
"""The most sights of a member."""

Levels = HashMap[int]
"""The number of passed sights of each hash, or OPEN."""

Ceilings = HashMap[int | None]
"""The offset up to which each hash may be read. None is no limit."""

Segments = Sequence[tuple[HashRange, int]]
"""Hash ranges that tile a partition, with their positions."""

PARTITIONS_MAX = 100_000
"""The most partitions of a topic. A larger number in Redis is damage."""

_FIELD = re.compile(rf"(\S+) ({NUMBER}) ({NUMBER})")
_VALUE = re.compile(rf"(\S+) (~?)({NUMBER}) ({NUMBER})(?: ({NUMBER}(?:,{NUMBER})*))?")


@dataclass(frozen=True, slots=True)
class Growth:
    """A topic grew from `old` to `new` partitions, as the group recorded it first."""

    topic: str
    topic_id: str
    old: int
    new: int
    seen_ms: int  # of Redis TIME
    until_ms: int  # the end of the grace
    ends: tuple[int, ...] = ()  # the ends of `holding`, read once the grace was over; empty until then
    late: bool = False  # no member had looked shortly before: the topic may have grown in several steps

    @property
    def gated(self) -> bool:
        """Whether new partitions wait for older ones: there is a grace."""
        return self.until_ms > self.seen_ms

    @property
    def kept(self) -> bool:
        """Whether key order is promised for all keys: also, no key moves between older partitions."""
        return self.gated and self.new % self.old == 0 and not (self.late and self.may_have_steps)

    @property
    def may_have_steps(self) -> bool:
        """Whether there are numbers of partitions that the topic may have had in between."""
        return self.new > self.old + 1

    @property
    def older(self) -> tuple[TopicPartition, ...]:
        """The partitions from before the growth."""
        return tuple(TopicPartition(self.topic, p) for p in range(self.old))

    @property
    def newer(self) -> tuple[TopicPartition, ...]:
        """The partitions that the growth added."""
        return tuple(TopicPartition(self.topic, p) for p in range(self.old, self.new))

    @property
    def steps(self) -> tuple[Self, ...]:
        """The possible last steps: from `old`, and from each number of partitions that the group may have missed."""
        between = (n for n in range(self.old, self.new, self.old) if n == self.old or self.new % n == 0)
        return tuple(replace(self, old=n, ends=self.ends[:n]) for n in between)

    @property
    def holding(self) -> tuple[TopicPartition, ...]:
        """The partitions that may hold others back: the older ones of every step."""
        return self.steps[-1].older

    def passed(self, stable: Mapping[TopicPartition, int]) -> bool:
        """Whether every partition of `holding` that has a stable offset is done up to the recorded ends."""
        return bool(self.ends) and all(
            stable.get(tp, end) >= end for tp, end in zip(self.holding, self.ends, strict=True)
        )

    @property
    def promise(self) -> str:
        """Whose order is promised across the growth."""
        if not self.gated:
            return "partitionGrowthGrace is 0, so key order across it is not kept"
        if self.new % self.old:
            return "not a multiple, so keys that moved between older partitions may be out of order"
        if not self.kept:
            return "seen late, so some keys may be out of order unless it was one step, or steps to multiples"
        return "key order across it is kept" + (" if it did not grow twice within seconds" * self.may_have_steps)

    def __str__(self) -> str:
        return f"topic {self.topic!r} grew from {self.old} to {self.new} partitions; {self.promise}"

    @property
    def field(self) -> str:
        """Its name in Redis."""
        return f"{self.topic} {self.old} {self.new}"

    @property
    def value(self) -> str:
        """Its text in Redis."""
        ends = " " + ",".join(map(str, self.ends)) if self.ends else ""
        return f"{self.topic_id} {'~' * self.late}{self.seen_ms} {self.until_ms}{ends}"

    @classmethod
    def parse(cls, field: str, value: str) -> Self:
        """The growth of its two texts; raises `StateFormatError`."""
        name, text = _FIELD.fullmatch(field), _VALUE.fullmatch(value)
        if not (name and text and 0 < int(name[2]) < int(name[3]) <= PARTITIONS_MAX):
            raise StateFormatError(f"the growth {field!r} is recorded as {value!r}")
        ends = tuple(map(int, text[5].split(","))) if text[5] else ()
        times = int(text[3]), int(text[4])
        growth = cls(name[1], text[1], int(name[2]), int(name[3]), *times, ends, late=bool(text[2]))
        if ends and len(ends) != len(growth.holding):
            raise StateFormatError(f"the growth {field!r} has {len(ends)} ends of older partitions: {value!r}")
        return growth


def parsed(texts: Mapping[str, str]) -> tuple[Growth, ...]:
    """Every growth in the form of Redis, in the order of their times."""
    return tuple(sorted((Growth.parse(f, v) for f, v in texts.items()), key=lambda g: (g.seen_ms, g.topic, g.new)))


def older_partitions(
    growths: Iterable[Growth], counts: Mapping[str, int], topics: Mapping[str, Topic]
) -> frozenset[TopicPartition]:
    """The partitions that may hold others back: of recorded growths, and of growths that are not recorded yet."""
    grown = (t for name, t in topics.items() if name in counts and counts[name] <= max(t.partitions, default=0))
    unseen = {TopicPartition(t.name, p) for t in grown for p in t.partitions if p < counts[t.name]}
    return frozenset(tp for g in growths if g.topic in topics for tp in g.holding) | unseen


@dataclass(frozen=True, slots=True)
class Sight:
    """Log ends in one look of a member: of newer partitions first, then of older ones."""

    number: int
    ends: Mapping[TopicPartition, int]  # seen first, of newer partitions
    marks: Mapping[TopicPartition, int]  # seen later: how far older partitions must be done


def remembered(sights: tuple[Sight, ...], sight: Sight) -> tuple[Sight, ...]:
    """The sights with a new one, at most SIGHTS: the oldest, the newest, and more of the newer ones between them.

    A hash that lags needs a recent sight that it has passed. After a log was cut, all earlier sights are worthless.
    """
    if sights and any(sight.marks.get(tp, mark) < mark for tp, mark in sights[-1].marks.items()):
        return (sight,)
    kept = (*sights, sight)
    if len(kept) <= SIGHTS:
        return kept

    def gap(i: int) -> float:
        return (kept[i + 1].number - kept[i - 1].number) / (sight.number - kept[i].number + 1)

    least = min(range(1, len(kept) - 1), key=gap)
    return kept[:least] + kept[least + 1 :]


def levels(growth: Growth, positions: Mapping[TopicPartition, Segments], sights: tuple[Sight, ...]) -> Levels:
    """The number of `sights` that each hash has passed in *every* older partition. OPEN if it has passed the ends.

    For one step of a growth. `positions` are of older partitions that the group reads; others do not count. The last
    sight must be newer than the record of `growth`.
    """
    older = (_levels_of(growth, i, positions[tp], sights) for i, tp in enumerate(growth.older) if tp in positions)
    all_of_them = HashMap.stacked([(WHOLE, OPEN), *chain.from_iterable(older)])
    return HashMap((hashes, min(of_each)) for hashes, of_each in all_of_them).coalesced()


def ceilings(level: Levels, tp: TopicPartition, sights: tuple[Sight, ...]) -> Ceilings:
    """How far each hash of the newer partition `tp` may be read."""
    return HashMap(
        (h, None if passed == OPEN else sights[passed - 1].ends.get(tp, 0) if passed else 0) for h, passed in level
    )


def _levels_of(growth: Growth, partition: int, segments: Segments, sights: tuple[Sight, ...]) -> Levels:
    tp = growth.older[partition]
    marks = [s.marks.get(tp) for s in sights]
    end = growth.ends[partition] if growth.ends else None
    if end is not None and marks and marks[-1] is not None:
        end = min(end, marks[-1])  # a log that was cut has no more records

    def level(position: int) -> int:
        if end is not None and position >= end:
            return OPEN
        return max((i for i, mark in enumerate(marks, start=1) if mark is not None and mark <= position), default=0)

    return HashMap((hashes, level(position)) for hashes, position in segments)
