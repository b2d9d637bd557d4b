"""Reports of tasks: the cost of a slice and of its keys. The planner uses them as guesses, never as facts of positions.

Values only. `spark_coop_source.telemetry` measures and sends them; `spark_coop_source.driver` receives them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, Self

from coordinator.progress.slices import Slice
from coordinator.values.ranges import HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

MOST_KEYS = 8
"""Keys of a slice that a report names: the costliest."""

MOST_AT = 32
"""Calls under way that a report names. With more, it names none, and the whole slice is under way."""


class KeyCost(NamedTuple):
    """The hash of a key, the milliseconds of work on its records, and how many they were."""

    key_hash: int
    ms: float
    rows: int


def dearest(keys: Sequence[KeyCost], work_ms: float) -> KeyCost | None:
    """The costliest of a lane's keys, if it stands out: most of the lane's work, or as dear as all others named."""
    key = max(keys, key=lambda k: k.ms, default=None)
    return key if key and 2 * key.ms > min(work_ms, sum(k.ms for k in keys)) else None


class KeyAt(NamedTuple):
    """The records of one call of the function: the hash of their key, and offsets from the first to the last one."""

    key_hash: int
    start: int
    until: int  # not included


@dataclass(frozen=True, slots=True)
class SliceCost:
    """The known work on one slice of a batch. Times are wall clock milliseconds of its task.

    `finished` is False in a report of the beginning of the work and in a sign of life: then the numbers count the work
    so far. A report can be lost. Without a report, nothing is known.
    """

    tp: TopicPartition
    hashes: HashRange
    offsets: OffsetRange
    rows: int  # that were kept, so within `hashes`
    bytes: int  # of their keys and values
    read_ms: (
        float  # fetching, decoding, filtering and choosing; shared out by rows among slices that were fetched at once
    )
    function_ms: float  # of the user's function inside `read`; with many keys at once, the sum over its threads
    keys: tuple[KeyCost, ...]  # the costliest first; empty unless the function is called key by key
    finished: bool
    at: tuple[KeyAt, ...] = ()  # the calls under way, ascending; empty if they are not known
    handed_ms: float | None = None  # from the plan until its task passed its first records on, if it reported that
    filtered: int = 0  # records that the filter dropped; of all lanes that this task fetched for

    @property
    def under_way(self) -> tuple[Slice, ...]:
        """The slice under way, or only its calls under way if these are known."""
        calls = (Slice(self.tp, HashRange(h, h), OffsetRange(start, until)) for h, start, until in self.at)
        return tuple(calls) or (self.slice,)

    @property
    def slice(self) -> Slice:
        """What the cost is of."""
        return Slice(self.tp, self.hashes, self.offsets)

    @classmethod
    def nothing(cls, of: Slice) -> Self:
        """The cost of a slice on which work has just begun."""
        return cls(of.topic_partition, of.hashes, of.offsets, 0, 0, 0.0, 0.0, (), finished=False)

    @classmethod
    def together(cls, costs: Sequence[Self]) -> Self:
        """The cost of several slices of one lane, at least one, with the offsets of the first."""
        first = costs[0]
        keys: dict[int, KeyCost] = {}
        for key in chain.from_iterable(cost.keys for cost in costs):
            before = keys.get(key.key_hash, KeyCost(key.key_hash, 0.0, 0))
            keys[key.key_hash] = KeyCost(key.key_hash, before.ms + key.ms, before.rows + key.rows)
        return cls(
            first.tp,
            first.hashes,
            first.offsets,
            sum(c.rows for c in costs),
            sum(c.bytes for c in costs),
            sum(c.read_ms for c in costs),
            sum(c.function_ms for c in costs),
            tuple(sorted(keys.values(), key=lambda key: -key.ms)[:MOST_KEYS]),
            all(c.finished for c in costs),
            handed_ms=min((c.handed_ms for c in costs if c.handed_ms is not None), default=None),
            filtered=sum(c.filtered for c in costs),
        )

    def clamped(self, most_ms: float, concurrency: int) -> Self:
        """The same within reason, for it came over a network: no more rows than offsets, no more time than has passed.

        So much for the reading, and for each of the `concurrency` threads of the function, whose times add up.
        """
        known = len(self.at) <= MOST_AT and all(
            at.key_hash in self.hashes and self.offsets.start <= at.start < at.until <= self.offsets.until
            for at in self.at
        )
        return type(self)(
            self.tp,
            self.hashes,
            self.offsets,
            min(max(self.rows, 0), len(self.offsets)),
            max(self.bytes, 0),
            min(max(self.read_ms, 0.0), most_ms),
            min(max(self.function_ms, 0.0), most_ms * concurrency),
            tuple(
                KeyCost(key.key_hash, min(max(key.ms, 0.0), most_ms), min(max(key.rows, 0), len(self.offsets)))
                for key in self.keys[:MOST_KEYS]
                if key.key_hash in self.hashes
            ),
            self.finished,
            self.at if known else (),
            self.handed_ms,
            min(max(self.filtered, 0), len(self.offsets)),
        )
