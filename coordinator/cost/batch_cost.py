"""One finished batch as the planner learns from it: its lanes, what each read, and how long it took.

Pure values. A lane here is a hash range of one partition with the offsets that the batch read of it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from operator import attrgetter
from statistics import median_low
from typing import NamedTuple

from coordinator.cost.profile import UNKNOWN, Cell, Profile, one
from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition
from coordinator.telemetry import KeyCost, SliceCost, dearest

Profiles = Mapping[TopicPartition, Profile]
LaneId = tuple[TopicPartition, HashRange]


def touch(some: LaneId, other: LaneId) -> bool:
    """Whether two lanes have hashes of a partition in common."""
    return some[0] == other[0] and some[1].intersection(other[1]) is not None


def cell_in(profiles: Profiles, lane: LaneId) -> Cell:
    """What is known of a lane."""
    return one(profiles.get(lane[0], UNKNOWN), lane[1])


class Load(NamedTuple):
    """What one lane read in a batch: offsets and records; `cost` is what its task reported, if it did."""

    lane: LaneId
    task: int
    span: int
    rows: float
    cost: SliceCost | None = None
    parts: tuple[HashRange, ...] = ()  # of lanes that are alike and of which nothing was told, if it is all of these

    @property
    def lanes(self) -> "tuple[Load, ...]":
        """Itself, or the lanes that it is."""
        if not self.parts:
            return (self,)
        tp, per_hash = self.lane[0], self.rows / self.lane[1].size
        return tuple(Load((tp, h), self.task, self.span, h.size * per_hash) for h in self.parts)

    @property
    def of_lanes(self) -> int:
        """How many lanes it is."""
        return len(self.parts) or 1

    def function_ms(self, concurrency: int) -> float | None:
        """What the user's function in `read` took of the lane's slot; None where it is not known."""
        if self.cost is None or not self.cost.function_ms:
            return None
        return max(self.cost.function_ms / concurrency, max((k.ms for k in self.cost.keys), default=0.0))

    @property
    def dear_key(self) -> KeyCost | None:
        """The key for which the lane may be cut, where the lane had other records too."""
        if self.cost is None:
            return None
        key = dearest(self.cost.keys, self.cost.function_ms)
        return key if key and 0 < key.rows < self.cost.rows else None

    def without(self, key: KeyCost) -> "Load":
        """The same but for a key's records."""
        if self.cost is None:
            return self
        keys = tuple(k for k in self.cost.keys if k != key)
        rows, function_ms = self.cost.rows - key.rows, max(0.0, self.cost.function_ms - key.ms)
        cost = replace(self.cost, rows=rows, function_ms=function_ms, keys=keys)
        return self._replace(rows=self.rows - key.rows, cost=cost)


def proven_in(profiles: Profiles) -> frozenset[TopicPartition]:
    """The partitions of which something is known for sure."""
    return frozenset(tp for tp, profile in profiles.items() for cell in profile if cell.sure)


@dataclass(frozen=True)  # without slots, for what is told of it again and again
class BatchCost:
    """A batch that the sink completed. `work_ms` is the time its slowest slot worked, as far as the clock tells.

    `clock_tells` is False where the next call came on Spark's trigger, so that waiting may be in it. `warm` is False
    where Python workers had to start first: no time in it is that of records. `maybe_waited` is True where the next
    call came as if on a trigger, if only once: what it took beside its records is not learned from it.
    """

    loads: tuple[Load, ...]
    work_ms: float
    clock_tells: bool = True
    warm: bool = True
    maybe_waited: bool = False

    @property
    def reading_ms(self) -> float | None:
        """What a record took to be read, beginning and end of reading included; None where it is not known."""
        costs = [x.cost for x in self.told if x.cost is not None and x.cost.finished]
        rows = sum(c.rows for c in costs)
        return sum(c.read_ms for c in costs) / rows if rows else None

    @cached_property
    def lanes(self) -> tuple[Load, ...]:
        """The loads of all lanes, one by one; there may be very many."""
        return tuple(lane for load in self.loads for lane in load.lanes)

    @cached_property
    def told(self) -> tuple[Load, ...]:
        """The lanes of which a task told what they cost."""
        return tuple(x for x in self.loads if x.cost is not None)

    def exact(self, concurrency: int) -> bool:
        """Whether a task measured what the user's function took."""
        return any(x.function_ms(concurrency) is not None for x in self.told)

    @property
    def start_ms(self) -> float | None:
        """Until half of the tasks handed on their first records, as far as was heard; None where nothing was.

        What comes before is Spark's planning, workers that wake up, connections: no record is the reason. Not the last
        of the tasks: where there are fewer cores than tasks it waits until others have ended.
        """
        told: dict[int, float] = {}
        for load in self.told:
            if load.cost is not None and load.cost.handed_ms is not None:
                told[load.task] = min(load.cost.handed_ms, told.get(load.task, inf))
        return median_low(told.values()) if told else None

    @cached_property
    def fullest(self) -> float:
        """Records of the task that had most."""
        return max(self._by_task(attrgetter("rows")), default=0.0)

    def beside_ms(self, reading_ms: float, concurrency: int) -> float | None:
        """What the batch took beside the work on its records; None where that is not known.

        Spark's own time, workers, the beginning of each reading: what more records do not make more.
        """

        def ms(load: Load) -> float:
            return reading_ms * load.rows + (load.function_ms(concurrency) or 0.0)

        if not self.exact(concurrency):
            return None
        return max(0.0, self.work_ms - max(self._by_task(ms)))

    def expected_ms(self, profiles: Profiles, unknown_ms: float, alike: Collection[LaneId] = ()) -> float:
        """What the slowest task should have taken by what was known.

        A record of unknown cost takes `unknown_ms`, and so does one of the lanes `alike`, whatever is known.
        """
        proven = proven_in(profiles)
        if not proven:  # mostly, and there may be very many lanes
            return unknown_ms * self.fullest

        def ms(load: Load) -> float:
            if load.lane[0] not in proven:
                return load.rows * unknown_ms
            cell = cell_in(profiles, load.lane)
            known = cell.sure and load.lane not in alike
            return load.rows * (cell.record_ms if known and cell.record_ms is not None else unknown_ms)

        return max(self._by_task(ms), default=0.0)

    def rows_of(self, lane: LaneId) -> float:
        """Records of a lane, which may have been read in parts."""
        return sum(x.rows for x in self.lanes if touch(x.lane, lane))

    def span_of(self, lane: LaneId) -> int:
        """Offsets that were read of a lane; where it was read in parts, of the longest."""
        return max((x.span for x in self.lanes if touch(x.lane, lane)), default=0)

    def rows_beside(self, load: Load) -> float:
        """Records of the rest of its task."""
        return sum(x.rows for x in self.loads if x.task == load.task) - load.rows

    def _by_task(self, of: Callable[[Load], float]) -> Iterable[float]:
        sums: defaultdict[int, float] = defaultdict(float)
        for load in self.loads:
            sums[load.task] += of(load)
        return sums.values()


@dataclass(frozen=True, slots=True)
class Ended:
    """A batch that the sink completed, and how long it took, Spark's own time included."""

    batch: BatchCost
    took_ms: float
