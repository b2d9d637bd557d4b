"""The cost of one finished batch: its lanes, the records that each read, and the time that it took.

A record that the filter drops counts as a part of a record: tasks read it too. Otherwise the planner would charge all
reading to the few kept records, and plan small batches for ever.

Pure values. A lane here is a hash range of one partition with the offsets that the batch read of it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from operator import attrgetter
from statistics import median_low
from typing import NamedTuple

from coordinator.plan.cost.telemetry import KeyCost, SliceCost, dearest
from coordinator.progress.failing import NO_FAILURES, Failures
from coordinator.progress.slices import LaneId
from coordinator.values.subscription import TopicPartition

DROPPED = 0.1
"""A record that the filter drops counts as this part of a record: it is fetched and decompressed, and then nothing.

With 1, lanes of dropped records would make all others look slow. With 0, a batch without kept records would show
nothing, and almost none would look very dear.
"""


def touch(some: LaneId, other: LaneId) -> bool:
    """Whether two lanes share hashes of a partition."""
    return some[0] == other[0] and some[1].intersection(other[1]) is not None


def touches(lane: LaneId, others: Collection[LaneId]) -> bool:
    """Whether a lane shares hashes with one of the others."""
    return any(touch(other, lane) for other in others)


class Load(NamedTuple):
    """The offsets and records of one lane in a batch; `cost` is its task's report, if one came."""

    lane: LaneId
    task: int
    span: int
    rows: float  # the records that it handed over, and `DROPPED` of each that the filter dropped
    cost: SliceCost | None = None

    @property
    def kept(self) -> float:
        """The records that it handed over."""
        return self.rows if self.cost is None else self.cost.rows

    @property
    def function_ms(self) -> float:
        """Time of the user's function in `read`, the sum over its threads; 0 where it is unknown."""
        return self.cost.function_ms if self.cost else 0.0

    @property
    def dear_key(self) -> KeyCost | None:
        """The key for which the lane may be cut, if the lane had records of other keys too."""
        if self.cost is None:
            return None
        key = dearest(self.cost.keys, self.cost.function_ms)
        return key if key and 0 < key.rows < self.kept else None

    def without(self, key: KeyCost) -> "Load":
        """The same load without the records of a key."""
        if self.cost is None:
            return self
        keys = tuple(k for k in self.cost.keys if k != key)
        rows, function_ms = self.cost.rows - key.rows, max(0.0, self.cost.function_ms - key.ms)
        cost = replace(self.cost, rows=rows, function_ms=function_ms, keys=keys)
        return self._replace(rows=self.rows - key.rows, cost=cost)


def with_dropped(loads: Collection[Load]) -> tuple[Load, ...]:
    """The loads, with the records that the filter dropped: each lane has the part of its hashes and offsets.

    A task may fetch for the lanes of other tasks, so its count is not of its own lanes only.
    """
    if not any(load.cost and load.cost.filtered for load in loads):
        return tuple(loads)
    dropped, plane = Counter[TopicPartition](), Counter[TopicPartition]()
    for load in loads:
        dropped[load.lane[0]] += load.cost.filtered if load.cost else 0
        plane[load.lane[0]] += load.span * load.lane[1].size
    return tuple(_with(load, dropped[load.lane[0]], plane[load.lane[0]]) for load in loads)


def _with(load: Load, dropped: int, plane: int) -> Load:
    if not (dropped and load.cost and load.span):  # tasks may end early, before all that they dropped
        return load
    part = dropped * (load.span * load.lane[1].size / plane)
    return load._replace(rows=load.rows + DROPPED * min(part, max(0.0, load.span - load.rows)))


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
        return tuple(load for load in self.loads if load.cost is not None)

    @property
    def reading_ms(self) -> float | None:
        """Time to read a record, beginning and end of reading included; None where it is unknown."""
        loads = [
            (load.rows, load.cost.read_ms) for load in self.reported if load.cost is not None and load.cost.finished
        ]
        rows = sum(count for count, _ in loads)
        return sum(ms for _, ms in loads) / rows if rows else None

    @property
    def thinned(self) -> float | None:
        """`rows` for each record that was handed over, at least 1; None where it is unknown."""
        rows = sum(load.rows for load in self.reported)
        return max(1.0, rows / max(1.0, sum(load.kept for load in self.reported))) if self.reported else None

    @property
    def exact(self) -> bool:
        """Whether a task measured the time of the user's function."""
        return any(load.function_ms for load in self.reported)

    def slot_ms(self, load: Load, concurrency: int) -> float:
        """The part of its slot's time that the function worked on a lane, if a task works on so many keys at once."""
        keys = () if load.cost is None else load.cost.keys
        return max([load.function_ms / concurrency, *(self.key_ms(load, key, concurrency) for key in keys)])

    def key_ms(self, load: Load, key: KeyCost, concurrency: int) -> float:
        """The same of one key: all of its time if its task had little else to do meanwhile."""
        return key.ms if key.ms > self._function_ms[load.task] / concurrency else key.ms / concurrency

    @cached_property
    def _function_ms(self) -> Mapping[int, float]:
        """The time of the function in each task, the sum over its threads."""
        sums = defaultdict[int, float](float)
        for load in self.reported:
            sums[load.task] += load.function_ms
        return sums

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
        return self.most(lambda load: load.rows * known_ms.get(load.lane, unknown_ms))

    def rows_beside(self, load: Load) -> float:
        """Records of the other lanes of its task."""
        return sum(other.rows for other in self.loads if other.task == load.task) - load.rows

    def of(self, lanes: Collection[LaneId]) -> tuple[Load, ...]:
        """The loads with hashes of these lanes."""
        return tuple(load for load in self.loads if load.span and touches(load.lane, lanes))


@dataclass(frozen=True, slots=True)
class Ended:
    """A batch that the sink completed, and its time, Spark's own time included."""

    batch: BatchCost
    took_ms: float
    failures: Failures = NO_FAILURES

    @property
    def filtered(self) -> int:
        """Records that filters dropped, as far as tasks reported them."""
        return sum(load.cost.filtered for load in self.batch.reported if load.cost is not None)
