"""Steers how much each lane reads, so that a batch keeps to its time budget and a slow key delays only itself.

    grant    before a plan: cuts owned ranges in lanes, each with the quota of this batch
    pack     after a batch was authorised: its tasks start now
    learn    after the sink completed it: records its cost

Knows the clock and the batch under way; `CostModel` has the learned costs. It never changes ownership or positions, so
a wrong guess costs time only. It lives as long as the process: a new process starts small again. Only `apply` calls it,
on the main thread of the reader's process.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from math import ceil
from operator import attrgetter

from coordinator.clock import Clock
from coordinator.cost.batch_cost import BatchCost, Ended, LaneId, Load
from coordinator.cost.end_history import EndHistory
from coordinator.cost.guesses import Allowance
from coordinator.cost.learning import NEWEST
from coordinator.cost.model import CostModel
from coordinator.cost.overhead import FIRST_MS, LOOK_BACK, Point, noise, overhead
from coordinator.cost.quotas import Budget, Quota, ceiling
from coordinator.plan.packing import Task, pack
from coordinator.plan.planning import Cutting, OwnedRange, OwnedRanges, even_bounds
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition
from coordinator.telemetry import SliceCost

WORKERS_WAIT_MS = 60_000
"""Spark ends Python workers after this time without work for any of them."""

TASK_MS = 50.0
"""Fixed cost of a task before it reads: less work than this does not justify another task."""

MANY_SLICES = 16
"""With this many slices for each task, all tasks have enough work, whatever the slices contain."""

ON_THE_SECOND_MS = 60
"""Spark's triggers fall on whole multiples of their interval. A call this soon after a full second may be a trigger."""


@dataclass(frozen=True, slots=True)
class _Flight:
    """The batch under way."""

    offset: StreamOffset
    packed: tuple[Task, ...]  # its tasks, with lanes of equal cost as one slice
    lanes: Mapping[LaneId, tuple[HashRange, ...]]  # the lanes in each of these slices
    tasks: tuple[Task, ...]
    began_ms: int
    trial: bool  # of a struck lane alone: it is excluded from the cost model


class Workers:
    """The Python workers that Spark keeps between batches; it ends all of them after a minute without work.

    Their start takes seconds of a batch's time, and does not depend on records.
    """

    def __init__(self) -> None:
        self._most, self._until_ms = 0, 0

    def warm(self, tasks: int, began_ms: int, ended_ms: int) -> bool:
        """Whether a batch had a running worker for each of its tasks."""
        before = self._most if began_ms < self._until_ms else 0
        self._most, self._until_ms = max(before, tasks), ended_ms + WORKERS_WAIT_MS
        return tasks <= before


class Steering:
    """The quotas of one member's lanes; see the module."""

    def __init__(
        self,
        clock: Clock,
        cutting: Cutting,
        budget: Budget,
        *,
        concurrency: int = 1,
    ) -> None:
        self._clock, self._cutting, self._budget = clock, cutting, budget
        self._model = CostModel(budget, concurrency, fixed=cutting.lanes is not None, now_ms=clock.now_ms())
        self._workers = Workers()
        self._reports: Mapping[Slice, SliceCost] = {}  # reports of the batch that ended last
        self._flight: _Flight | None = None
        self._model.overhead_ms = FIRST_MS
        self._took: deque[Point] = deque(maxlen=LOOK_BACK)
        self._on_the_second = False
        self._before: BatchCost | None = None
        self._waits_ms: float | None = None
        self.history = EndHistory()
        """When log ends passed which offsets: from this follows the age of unread records."""
        self.quotas: tuple[Quota, ...] = ()
        """The quota of each lane in the batch that was planned last, with its reason; or pieces without a limit."""
        self.cutting = cutting.at()
        """How a plan cuts the last result of `_bounded`."""

    def grant(
        self,
        work: OwnedRanges,
        ends: Mapping[TopicPartition, int],
        trial: LaneId | None = None,
        *,
        everything: bool = False,
        anew: Iterable[LaneId] = (),
    ) -> Allowance:
        """Owned ranges as lanes, each up to the ceiling of its quota; the lane of a `trial` is not cut.

        Where nothing limits any lane, ranges stay whole, and `cutting` decides the cuts. A trial is no turn of other
        lanes, so it changes no suspicion. With `everything`, the time budget limits nothing. Lanes in `anew` start
        small, and double.
        """
        self._model.forget(anew)
        limited = self._bounded(work, ends, trial, everything=everything)
        return Allowance(limited, self.quotas, self.cutting)

    def _bounded(
        self, work: OwnedRanges, ends: Mapping[TopicPartition, int], whole: LaneId | None, *, everything: bool
    ) -> OwnedRanges:
        budgeted = self._budget.ms and not everything
        self.history.saw(ends, self._clock.now_ms())
        even = even_bounds(work, ends, self._cutting)
        self.cutting = self._cutting.at()
        if whole is None and budgeted and self._model.grant_all(_each(work), ends, even):
            self.quotas, self.cutting = self._model.quotas, self._cutting.at(*even)
            return work
        lanes = tuple(self._lanes(work, even, whole))
        if budgeted and whole is None:
            self._model.grant(lanes, ends, self._age_ms)
            self.quotas = self._model.quotas
        else:
            rate_ms = self._model.rate_ms or 0.0
            each = ((tp, p, ends[tp], self._model.cell((tp, p.hashes))) for tp, p in lanes)
            self.quotas = tuple(Quota(tp, p, end, cell, rate_ms, ceiling(p, end)) for tp, p, end, cell in each)
        return {tp: tuple(q.piece for q in of_tp) for tp, of_tp in groupby(self.quotas, key=attrgetter("tp"))}

    def _age_ms(self, tp: TopicPartition, position: int) -> float:
        behind = self.history.behind_ms(tp, position, self._clock.now_ms())
        return behind[0] if behind else 0.0

    def pack(self, end: StreamOffset, readable: StreamOffset, *, trial: bool = False) -> tuple[Task, ...]:
        """The tasks of a batch of which `readable` may be read; the same again for the same batch."""
        if self._flight is None or self._flight.offset != end:
            packed, lanes = self._packed(readable)
            tasks = tuple(tuple(chain.from_iterable(_parts(s, lanes) for s in task)) for task in packed)
            self._flight = _Flight(end, packed, lanes, tasks, self._clock.now_ms(), trial)
        return self._flight.tasks

    def learn(self, offset: StreamOffset, reports: Mapping[Slice, SliceCost]) -> Ended | None:
        """Learn from the batch that ended at `offset`, if this process ran one. Any start offset may be passed."""
        flight, self._flight, self._reports = self._flight, None, reports
        on_trigger = self._on_trigger()
        if flight is None or flight.offset != offset:
            return None
        took = self._clock.now_ms() - flight.began_ms
        warm = self._workers.warm(min(len(flight.tasks), self._budget.slots), flight.began_ms, self._clock.now_ms())
        batch = self._over(flight, took, warm=warm)
        ended = Ended(batch, took)
        if not self._budget.ms or flight.trial or (warm and self._model.quiet(batch.work_ms)):
            return ended
        if warm and (on_trigger or self._waited(batch)):
            batch = replace(batch, clock_valid=False)
        self._model.learn(batch, self._clock.now_ms())
        return ended

    def _over(self, flight: _Flight, took: int, *, warm: bool) -> BatchCost:
        """The batch, with the time that its records took."""
        waited = self._on_the_second
        batch = BatchCost(tuple(self._loads(flight)), float(took), warm=warm, maybe_waited=waited)
        rest = took - self._started(batch, took)
        healthy = not flight.trial and batch.fullest >= 1 and not self._model.busy_with_slow(batch)
        if warm and not waited and healthy:
            self._took.append((batch.fullest, rest))
            estimate = overhead(self._took, self._model.overhead_ms)
            self._model.overhead_ms = min(estimate, self._budget.ms / 2)  # more may be a wait for a trigger
            self._model.noise_ms = noise(self._took, self._model.overhead_ms)
        return replace(batch, work_ms=max(0.0, rest - self._model.overhead_ms))

    def _started(self, batch: BatchCost, took: int) -> float:
        """Time until tasks passed on records; the usual time where no task reported it."""
        measured, mostly = batch.start_ms, self._model.start_ms
        if measured is not None and batch.warm:
            if not mostly:  # the first estimate of the overhead included it
                self._model.overhead_ms = max(0.0, self._model.overhead_ms - measured)
            self._model.start_ms = min((mostly or measured) * (1 - NEWEST) + measured * NEWEST, self._budget.ms / 2)
        return min(self._model.start_ms if measured is None else measured, float(took))

    def _on_trigger(self) -> bool:
        """Whether this call and the one before it came as if by Spark's trigger: then the time includes waiting."""
        before, self._on_the_second = self._on_the_second, self._clock.wall_ms() % 1000 < ON_THE_SECOND_MS
        return before and self._on_the_second

    def _waited(self, batch: BatchCost) -> bool:
        """Whether a batch took as long as an earlier one with much more to do: then it waited, for a trigger or so."""
        before, self._before = self._before, batch
        if self._waits_ms is not None and abs(batch.work_ms - self._waits_ms) <= 0.15 * self._waits_ms:
            return True
        too_long = batch.work_ms > self._budget.ms and before is not None
        less = too_long and before is not None and batch.fullest <= 0.6 * before.fullest
        near = 0.03 if self._model.trying else 0.2  # a trial may take about as long as the batch before it
        waited = less and before is not None and abs(batch.work_ms - before.work_ms) <= near * before.work_ms
        self._waits_ms = batch.work_ms if waited else None
        return waited

    def offsets_of_a_record(self, lane: LaneId) -> int:
        """The number of offsets that contain about one record of a lane."""
        return max(1, ceil(1 / self._model.cell(lane).density))

    def _lanes(
        self, work: OwnedRanges, even: tuple[int, ...], whole: LaneId | None
    ) -> Iterator[tuple[TopicPartition, OwnedRange]]:
        for tp, parts in work.items():
            bounds = (*even, *cuts) if (cuts := self._model.bounds(tp)) else even
            for piece in parts:
                for hashes in piece.hashes.cut(() if (tp, piece.hashes) == whole else bounds):
                    yield tp, piece.within(hashes)

    def _packed(self, offset: StreamOffset) -> tuple[tuple[Task, ...], dict[LaneId, tuple[HashRange, ...]]]:
        """As many tasks as slots, or as the user requests; fewer where there is little to do."""
        tasks, most = self._cutting.tasks, self._cutting.max_records_per_partition
        slices, lanes = self._slices(offset)
        if self._model.rate_ms is not None and sum(map(len, lanes.values())) <= MANY_SLICES * tasks:
            few = ceil(sum(map(self._model.work_ms, slices)) / TASK_MS)
            tasks = min(tasks, max(1, few, self._cutting.min_partitions or 0))
        parts = partial(_parts, lanes=lanes)
        return pack(slices, tasks=tasks, max_weight=most, work=self._model.work_ms, parts=parts), lanes

    def _slices(self, offset: StreamOffset) -> tuple[list[Slice], dict[LaneId, tuple[HashRange, ...]]]:
        """The slices of a batch, with lanes of equal cost joined; and the lanes in each."""
        slices: list[Slice] = []
        lanes: dict[LaneId, tuple[HashRange, ...]] = {}
        for tp, rows in offset.rows.items():
            alike = self._model.alike(tp)
            for row in rows:
                if row.offsets:
                    each = {row.hashes: row.parts} if alike else {h: (h,) for h in row.parts}
                    slices += (Slice(tp, hashes, offsets) for hashes in each for offsets in row.offsets)
                    lanes |= {(tp, hashes): parts for hashes, parts in each.items()}
        return slices, lanes

    def _loads(self, flight: _Flight) -> Iterator[Load]:
        """The lanes of a batch with the reports of their tasks; without a report, records are a guess."""
        for number, task in enumerate(flight.tasks if self._reports else flight.packed):
            spans: dict[LaneId, int] = {}
            for tp, hashes, offsets in task:
                lane = tp, hashes
                spans[lane] = spans.get(lane, 0) + offsets.until - offsets.start
            costs = self._costs(task) if self._reports else {}
            for lane, span in spans.items():
                cost = costs.get(lane)
                rows = cost.rows if cost else span * self._model.cell(lane).density
                parts = () if self._reports else flight.lanes.get(lane, ())
                yield Load(lane, number, span, rows, cost, parts)

    def _costs(self, task: Task) -> dict[LaneId, SliceCost]:
        """The costs of lanes for whose slices all final reports came."""
        of_lanes: dict[LaneId, list[SliceCost | None]] = {}
        for s in task:
            of_lanes.setdefault(s.lane, []).append(self._reports.get(s))
        finished = {lane: [c for c in costs if c and c.finished] for lane, costs in of_lanes.items()}
        return {
            lane: SliceCost.together(costs) for lane, costs in finished.items() if len(costs) == len(of_lanes[lane])
        }


def _parts(s: Slice, lanes: Mapping[LaneId, tuple[HashRange, ...]]) -> Task:
    tp, _, offsets = s
    return tuple([Slice(tp, hashes, offsets) for hashes in lanes.get(s.lane, (s.hashes,))])


def _each(work: OwnedRanges) -> Iterator[tuple[TopicPartition, OwnedRange]]:
    return ((tp, piece) for tp, parts in work.items() for piece in parts)
