"""A workload for the planner without Kafka or Spark: keys with costs, slots that work, a clock that they move.

One partition; records come at a steady rate, their keys at random. A batch is what `Steering` and `plan` make of
it; its time is that of its slowest slot. What a task reports is as in life: records always, time only if `exact`.
A task ends when its share of the time budget is over: after the record that it works on, or with full buffers.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from coordinator.plan.cost.quotas import Budget, Quota
from coordinator.plan.cost.steering import Steering
from coordinator.plan.cost.telemetry import MOST_KEYS, KeyCost, SliceCost
from coordinator.plan.packing import Task
from coordinator.plan.planning import Cutting, plan, with_positions
from coordinator.plan.poison import Strike, tried
from coordinator.progress.ends import ended, ends_of
from coordinator.progress.ownership import Owned
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.slices import LaneId, Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.hash_map import HashMap
from coordinator.values.key_hash import hash_key
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition

TP = TopicPartition("t", 0)
SPARK_MS = 200  # what a batch takes besides its tasks
BUFFERED = 20_000  # records that a task hands over before anybody behind the read has worked on one


@dataclass
class WorkClock:
    """Moved by the work."""

    now: float = 12_345.0

    def now_ms(self) -> int:
        """See `Clock`."""
        return int(self.now)

    def wall_ms(self) -> int:
        """See `Clock`."""
        return int(self.now)

    def wait(self, ms: int) -> None:
        """See `Clock`."""
        self.now += ms

    def wake(self) -> None:
        """See `Clock`: nothing waits meanwhile."""


@dataclass(frozen=True)
class Batch:
    """The results of one batch."""

    ms: float  # of its slowest slot
    slots_ms: tuple[float, ...]
    rows: int
    lanes: tuple[Slice, ...]


@dataclass
class Workload:
    """Runs batches one after the other; see the module."""

    cost_ms: Mapping[bytes, float]  # of each key's record; all keys come equally often
    slots: int
    per_second: float
    budget_ms: int = 10_000
    exact: bool = False
    backlog: int = 0
    trigger_ms: int = 0
    cold_ms: float = 0.0  # what it takes to start the workers of the first batch
    spark_ms: float = SPARK_MS
    noisy_ms: float = 0.0  # so much more of it, at most, as chance will have it
    early: float | None = None  # the part of it after which tasks pass on records, if they report that
    open_ms: float = 0.0  # what reading takes before a task's first record
    first_ms: float = 0.0  # what a task's first call of the function takes longer than the others
    keeps: float = 1.0  # the part of the records that the filter keeps, as far as chance goes
    denied: Collection[bytes] = ()  # keys whose records the filter drops
    read_ms: float = 0.0  # what it takes to read a record, dropped or not
    seed: int = 1
    records: int = 2_000_000  # no more come
    lanes: int | None = None
    strikes: tuple[Strike, ...] = ()  # lanes on trial
    anew: tuple[LaneId, ...] = ()  # lanes of which nothing is believed any more in the next batch
    quotas: tuple[Quota, ...] = ()  # of the last batch
    clock: WorkClock = field(default_factory=WorkClock)
    batches: list[Batch] = field(default_factory=list)

    def __post_init__(self) -> None:
        keys = sorted(self.cost_ms)
        self.chance = np.random.default_rng(self.seed)
        self.drawn = self.chance.integers(0, len(keys), self.records)
        self.hashes: NDArray[np.int64] = np.array([hash_key(k) for k in keys])[self.drawn]
        self.costs: NDArray[np.float64] = np.array([self.cost_ms[k] for k in keys])[self.drawn]
        self.kept = np.array([k not in self.denied for k in keys])[self.drawn]
        if self.keeps < 1.0:
            self.kept &= self.chance.random(self.records) < self.keeps
        self.progress = Progress((Segment(WHOLE, 0),))
        cutting = Cutting(self.slots, lanes=self.lanes)
        budget = Budget(self.budget_ms, self.slots)
        self.steering = Steering(self.clock, cutting, budget)
        self._started = self.clock.now

    @property
    def end(self) -> int:
        """The end of the log."""
        return min(self.records, self.backlog + int((self.clock.now - self._started) * self.per_second / 1000))

    def costs_now(self, **cost_ms: float) -> None:
        """From now on records of these keys cost so much."""
        keys = sorted(self.cost_ms)
        for key, ms in cost_ms.items():
            self.costs[self.drawn == keys.index(key.encode())] = ms

    def run(self, batches: int) -> Sequence[Batch]:
        """Runs so many batches more, and returns them."""
        for _ in range(batches):
            self._batch()
        return self.batches[-batches:]

    def run_for(self, ms: float) -> Sequence[Batch]:
        """Runs batches for so many milliseconds, and returns them."""
        until, before = self.clock.now + ms, len(self.batches)
        while self.clock.now < until:
            self._batch()
        return self.batches[before:]

    def lag(self, wanted: Callable[[int], bool]) -> int:
        """Records of some hashes that are in the log and not done."""
        waiting = 0
        for s in self.progress.segments:
            hashes = self.hashes[s.position : self.end]
            for h in hashes[(s.hashes.lo <= hashes) & (hashes <= s.hashes.hi)]:
                waiting += wanted(int(h))
        return waiting

    def _batch(self) -> None:
        ends, next_ms = {TP: self.end}, self.clock.now + self.trigger_ms
        work = with_positions({TP: (Owned(WHOLE, "e.1"),)}, {TP: self.progress})
        work, trials = tried(work, self.strikes, self.steering.offsets_of_a_record)
        granted = self.steering.grant(work, ends, trials, early=True, anew=self.anew)
        self.quotas, self.anew = granted.quotas, ()
        offset = StreamOffset("g", "m", lanes=plan(granted.work, ends, granted.cutting))
        tasks = self.steering.pack(offset, offset, apart=trials)
        self._reports: dict[Slice, SliceCost] = {}
        start_ms = 0.0 if self.batches else self.cold_ms
        own_ms = self.spark_ms + float(self.chance.uniform(0.0, self.noisy_ms))
        handed_ms = None if self.early is None else self.early * own_ms
        until = [self._until(task, start_ms) for task in tasks]
        slots_ms = tuple(self._worked(task, end, start_ms, handed_ms) for task, end in zip(tasks, until, strict=True))
        early = ends_of((task, {TP: HashMap.of(WHOLE, end)}) for task, end in zip(tasks, until, strict=True))
        took = max(slots_ms, default=0.0)
        self.clock.now += took + own_ms
        if self.trigger_ms:  # a batch that is late is followed at once
            self.clock.now = max(self.clock.now, next_ms - next_ms % self.trigger_ms)
        rows = sum(report.rows for report in self._reports.values())
        self.batches.append(Batch(took, slots_ms, rows, tuple(s for task in tasks for s in task)))
        for s in ended(offset, early).slices:
            self.progress = self.progress.add_all([(s.hashes, (s.offsets,))])
        self.progress = coalesced(self.progress)
        self.steering.learn(offset, self._reports, early)

    def _points(self, s: Slice) -> NDArray[np.int64]:
        offsets = np.arange(s.offsets.start, s.offsets.until)
        hashes = self.hashes[s.offsets.start : s.offsets.until]
        return offsets[(s.hashes.lo <= hashes) & (hashes <= s.hashes.hi)]

    def _until(self, task: Task, start_ms: float) -> int:
        """The offset at which a task ends its slices: early where its time is over."""
        planned = max(s.offsets.until for s in task)
        if not self.budget_ms:
            return planned
        points = np.sort(np.concatenate([self._points(s) for s in task]))
        left_ms = self.budget_ms - self.steering.beside_ms - start_ms - self.open_ms - self.first_ms
        over = int(np.searchsorted(np.cumsum(self._costs_of(points)), left_ms)) + 1
        if not self.exact:
            full = int(np.searchsorted(np.cumsum(self.kept[points[over:]]), BUFFERED, side="right"))
            read = left_ms / self.read_ms if self.read_ms else len(points)
            over = max(over, min(over + full, int(read)))
        return planned if over >= len(points) else int(points[over])

    def _costs_of(self, points: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.where(self.kept[points], self.costs[points], 0.0) + self.read_ms

    def _worked(self, task: Task, until: int, start_ms: float, handed_ms: float | None) -> float:
        """The milliseconds of a task; to the task, reading begins while its worker starts."""
        read_ms = (start_ms + self.open_ms) / len(task)
        total, first_ms = len(task) * read_ms, self.first_ms
        for s in task:
            points = self._points(s)
            points = points[points < until]
            kept, reading_ms = points[self.kept[points]], self.read_ms * len(points)
            costs = self.costs[kept]
            if len(costs):
                costs[0], first_ms = costs[0] + first_ms, 0.0
            ms = float(costs.sum())
            total += ms + reading_ms
            keys = self._keys(kept, costs) if self.exact else ()
            function_ms = ms if self.exact else 0.0
            read = read_ms + reading_ms
            cost = SliceCost(TP, s.hashes, s.offsets, len(kept), 0, read, function_ms, keys, finished=True)
            self._reports[s] = replace(cost, handed_ms=handed_ms, filtered=len(points) - len(kept))
        return total

    def _keys(self, points: NDArray[np.int64], costs: NDArray[np.float64]) -> tuple[KeyCost, ...]:
        hashes, at = np.unique(self.hashes[points], return_inverse=True)
        sums = np.bincount(at, costs, minlength=len(hashes))
        rows = np.bincount(at, minlength=len(hashes))
        best = np.argsort(-sums)[:MOST_KEYS]
        return tuple(KeyCost(int(hashes[i]), float(sums[i]), int(rows[i])) for i in best)


def few_keys(spark_ms: float, noisy_ms: float, seed: int) -> Workload:
    """A backlog of 25 keys on four slots, of which `k7` has two thirds of the work; budget 3 s."""
    costs, records = {b"k%d" % i: 1.0 for i in range(25)} | {b"k7": 50.0}, 20_000
    return Workload(
        costs,
        slots=4,
        per_second=0.0,
        budget_ms=3_000,
        backlog=records,
        records=records,
        cold_ms=3_000.0,
        spark_ms=spark_ms,
        noisy_ms=noisy_ms,
        early=0.6,
        seed=seed,
    )


def coalesced(progress: Progress) -> Progress:
    """The same state in the fewest segments."""
    alike = HashMap((s.hashes, (s.position, s.ics)) for s in progress.segments).coalesced()
    return Progress(tuple(Segment(hashes, *state) for hashes, state in alike))
