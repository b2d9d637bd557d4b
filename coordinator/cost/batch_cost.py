"""The cost of one finished batch: its lanes, the records that each read, and the time that it took.

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
    """Whether two lanes share hashes of a partition."""
    return some[0] == other[0] and some[1].intersection(other[1]) is not None


def cell_in(profiles: Profiles, lane: LaneId) -> Cell:
    """The known cost of a lane."""
    return one(profiles.get(lane[0], UNKNOWN), lane[1])


class Load(NamedTuple):
    """The offsets and records of one lane in a batch; `cost` is its task's report, if one came."""

    lane: LaneId
    task: int
    span: int
    rows: float
    cost: SliceCost | None = None
    parts: tuple[HashRange, ...] = ()  # the lanes, if this load stands for equal lanes without a report

    @property
    def lanes(self) -> "tuple[Load, ...]":
        """This load, or one load for each of its lanes."""
        if not self.parts:
            return (self,)
        tp, per_hash = self.lane[0], self.rows / self.lane[1].size
        return tuple(Load((tp, h), self.task, self.span, h.size * per_hash) for h in self.parts)

    @property
    def of_lanes(self) -> int:
        """The number of its lanes."""
        return len(self.parts) or 1

    def function_ms(self, concurrency: int) -> float | None:
        """Time of the user's function in `read` within the lane's slot; None where it is unknown."""
        if self.cost is None or not self.cost.function_ms:
            return None
        return max(self.cost.function_ms / concurrency, max((k.ms for k in self.cost.keys), default=0.0))

    @property
    def dear_key(self) -> KeyCost | None:
        """The key for which the lane may be cut, if the lane had records of other keys too."""
        if self.cost is None:
            return None
        key = dearest(self.cost.keys, self.cost.function_ms)
        return key if key and 0 < key.rows < self.cost.rows else None

    def without(self, key: KeyCost) -> "Load":
        """The same load without the records of a key."""
        if self.cost is None:
            return self
        keys = tuple(k for k in self.cost.keys if k != key)
        rows, function_ms = self.cost.rows - key.rows, max(0.0, self.cost.function_ms - key.ms)
        cost = replace(self.cost, rows=rows, function_ms=function_ms, keys=keys)
        return self._replace(rows=self.rows - key.rows, cost=cost)


def proven_in(profiles: Profiles) -> frozenset[TopicPartition]:
    """The partitions with a proven or measured cost."""
    return frozenset(tp for tp, profile in profiles.items() for cell in profile if cell.sure)


@dataclass(frozen=True)  # without slots, for its cached properties
class BatchCost:
    """A batch that the sink completed. `work_ms` is the time that its slowest slot worked, by the clock.

    `clock_valid` is False where the next call came on Spark's trigger, because the time may include waiting. `warm` is
    False where Python workers had to start first: then no part of the time is due to records. `maybe_waited` is True
    where the next call came once as if on a trigger: then the model does not learn the time beside the records.
    """

    loads: tuple[Load, ...]
    work_ms: float
    clock_valid: bool = True
    warm: bool = True
    maybe_waited: bool = False

    @property
    def reading_ms(self) -> float | None:
        """Time to read a record, beginning and end of reading included; None where it is unknown."""
        costs = [x.cost for x in self.reported if x.cost is not None and x.cost.finished]
        rows = sum(c.rows for c in costs)
        return sum(c.read_ms for c in costs) / rows if rows else None

    @cached_property
    def lanes(self) -> tuple[Load, ...]:
        """The loads of all lanes, one by one; there may be very many."""
        return tuple(lane for load in self.loads for lane in load.lanes)

    @cached_property
    def reported(self) -> tuple[Load, ...]:
        """The lanes whose task reported a cost."""
        return tuple(x for x in self.loads if x.cost is not None)

    def exact(self, concurrency: int) -> bool:
        """Whether a task measured the time of the user's function."""
        return any(x.function_ms(concurrency) is not None for x in self.reported)

    @property
    def start_ms(self) -> float | None:
        """Time until half of the tasks passed on their first records, by their reports; None without reports.

        Before that come Spark's planning, worker starts and connections, which do not depend on records. The last task
        does not count: with fewer cores than tasks, it waits until others have ended.
        """
        first_ms: dict[int, float] = {}
        for load in self.reported:
            if load.cost is not None and load.cost.handed_ms is not None:
                first_ms[load.task] = min(load.cost.handed_ms, first_ms.get(load.task, inf))
        return median_low(first_ms.values()) if first_ms else None

    @cached_property
    def fullest(self) -> float:
        """Records of the largest task."""
        return max(self._by_task(attrgetter("rows")), default=0.0)

    def beside_ms(self, reading_ms: float, concurrency: int) -> float | None:
        """Time of the batch beside the work on its records; None where it is unknown.

        Spark's own time, workers, the start of each reading. More records do not increase it.
        """

        def ms(load: Load) -> float:
            return reading_ms * load.rows + (load.function_ms(concurrency) or 0.0)

        if not self.exact(concurrency):
            return None
        return max(0.0, self.work_ms - max(self._by_task(ms)))

    def expected_ms(self, profiles: Profiles, unknown_ms: float, alike: Collection[LaneId] = ()) -> float:
        """The expected time of the slowest task, by the known costs.

        A record of unknown cost takes `unknown_ms`. So does a record of the lanes `alike`, whatever their known cost.
        """
        proven = proven_in(profiles)
        if not proven:  # the common case, with very many lanes
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
        """Offsets that were read of a lane; if it was read in parts, those of the longest part."""
        return max((x.span for x in self.lanes if touch(x.lane, lane)), default=0)

    def rows_beside(self, load: Load) -> float:
        """Records of the other lanes of its task."""
        return sum(x.rows for x in self.loads if x.task == load.task) - load.rows

    def _by_task(self, of: Callable[[Load], float]) -> Iterable[float]:
        sums: defaultdict[int, float] = defaultdict(float)
        for load in self.loads:
            sums[load.task] += of(load)
        return sums.values()


@dataclass(frozen=True, slots=True)
class Ended:
    """A batch that the sink completed, and its time, Spark's own time included."""

    batch: BatchCost
    took_ms: float
