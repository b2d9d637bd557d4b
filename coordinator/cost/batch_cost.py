"""The cost of one finished batch: its lanes, the records that each read, and the time that it took.

Pure values. A lane here is a hash range of one partition with the offsets that the batch read of it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from operator import attrgetter
from statistics import median_low
from typing import NamedTuple

from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition
from coordinator.telemetry import KeyCost, SliceCost, dearest

LaneId = tuple[TopicPartition, HashRange]


def touch(some: LaneId, other: LaneId) -> bool:
    """Whether two lanes share hashes of a partition."""
    return some[0] == other[0] and some[1].intersection(other[1]) is not None


def touches(lane: LaneId, others: Collection[LaneId]) -> bool:
    """Whether a lane shares hashes with one of the others."""
    return any(touch(x, lane) for x in others)


class Load(NamedTuple):
    """The offsets and records of one lane in a batch; `cost` is its task's report, if one came."""

    lane: LaneId
    task: int
    span: int
    rows: float
    cost: SliceCost | None = None

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


@dataclass(frozen=True)  # without slots, for its cached properties
class BatchCost:
    """A batch that the sink completed. `work_ms` is its time by the clock, from the first records of its tasks on.

    `warm` is False where Python workers had to start first: then the time shows little of the records.
    """

    loads: tuple[Load, ...]
    work_ms: float
    warm: bool = True

    @cached_property
    def reported(self) -> tuple[Load, ...]:
        """The lanes whose task reported a cost."""
        return tuple(x for x in self.loads if x.cost is not None)

    @property
    def reading_ms(self) -> float | None:
        """Time to read a record, beginning and end of reading included; None where it is unknown."""
        costs = [x.cost for x in self.reported if x.cost is not None and x.cost.finished]
        rows = sum(c.rows for c in costs)
        return sum(c.read_ms for c in costs) / rows if rows else None

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
        return self.most(attrgetter("rows"))

    def most(self, of: Callable[[Load], float]) -> float:
        """The largest sum of a task."""
        sums: defaultdict[int, float] = defaultdict(float)
        for load in self.loads:
            sums[load.task] += of(load)
        return max(sums.values(), default=0.0)

    def expected_ms(self, known_ms: Mapping[LaneId, float], unknown_ms: float) -> float:
        """The expected time of the slowest task, if a record of these lanes takes so long, and others `unknown_ms`."""
        return self.most(lambda x: x.rows * known_ms.get(x.lane, unknown_ms))

    def rows_beside(self, load: Load) -> float:
        """Records of the other lanes of its task."""
        return sum(x.rows for x in self.loads if x.task == load.task) - load.rows

    def of(self, lanes: Collection[LaneId]) -> tuple[Load, ...]:
        """The loads with hashes of these lanes."""
        return tuple(x for x in self.loads if x.span and touches(x.lane, lanes))


@dataclass(frozen=True, slots=True)
class Ended:
    """A batch that the sink completed, and its time, Spark's own time included."""

    batch: BatchCost
    took_ms: float

    @property
    def filtered(self) -> int:
        """Records that filters dropped, as far as tasks reported them."""
        return sum(load.cost.filtered for load in self.batch.reported if load.cost is not None)
