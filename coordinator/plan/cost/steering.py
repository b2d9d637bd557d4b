"""Steers how much each lane reads, so that a batch keeps to its time budget and a slow key delays only itself.

    grant    before a plan: cuts owned ranges in lanes, each with the quota of this batch
    pack     after a batch was authorised: its tasks start now
    learn    after the sink completed it: records its cost

This is the cost model's interface to the member: the member uses the modules behind it through this one only. It never
changes ownership or positions, so a wrong guess costs time only. It lives as long as the process: a new process starts
small again. Only `apply` calls it, on the main thread of the reader's process.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil, inf
from operator import attrgetter

from coordinator.plan.cost.batch_cost import BatchCost, Ended, Load, with_dropped
from coordinator.plan.cost.knowledge import TASK_MS, Knowledge
from coordinator.plan.cost.quotas import Budget, Quota, ceiling, quotas
from coordinator.plan.cost.telemetry import SliceCost
from coordinator.plan.packing import Task, pack, pack_offsets
from coordinator.plan.planning import Cutting, OwnedRange, OwnedRanges, lane_bounds
from coordinator.plan.poison import trial_of
from coordinator.progress.end_history import EndHistory
from coordinator.progress.ends import Ends, slices_to
from coordinator.progress.slices import LaneId, Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.clock import Clock
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition

WORKERS_WAIT_MS = 60_000
"""Spark ends Python workers after this time without work for any of them."""

ALL_OFFSETS = 10**12
"""More offsets than a batch can have."""

JITTER_MS = 60
"""A call this soon after a full second may be Spark's trigger: they fall on whole multiples of their interval.

Two batches in a row beyond the budget whose times differ by less have waited for something, too.
"""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The most that each lane may read in the next batch."""

    work: OwnedRanges  # under the ceilings of the quotas
    quotas: tuple[Quota, ...]  # of each lane, or of pieces that may be read to the end
    cutting: Cutting  # how a plan cuts `work`


@dataclass(frozen=True, slots=True)
class _Flight:
    """The batch under way."""

    offset: StreamOffset
    tasks: tuple[Task, ...]
    began_ms: int


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

    def __init__(self, clock: Clock, cutting: Cutting, budget: Budget, *, concurrency: int = 1) -> None:
        self._clock, self._cutting, self._budget = clock, cutting, budget
        self._known = Knowledge(budget, concurrency, cutting.joined, fixed=cutting.lanes is not None)
        self._workers = Workers()
        self._flight: _Flight | None = None
        self._on_the_second = False
        self._took = 0.0  # by the last batch
        self.history = EndHistory()
        """When log ends passed which offsets: from this follows the age of unread records."""
        self.quotas: tuple[Quota, ...] = ()
        """The quota of each lane in the batch that was planned last, with its reason; or pieces without a limit."""

    @property
    def beside_ms(self) -> float:
        """The part of the time budget that tasks must leave for the rest of a batch."""
        return self._known.beside_ms

    def grant(
        self,
        work: OwnedRanges,
        ends: Mapping[TopicPartition, int],
        whole: Collection[LaneId] = (),
        *,
        everything: bool = False,
        early: bool = False,
        anew: Iterable[LaneId] = (),
        in_order: frozenset[str] = frozenset(),
    ) -> Allowance:
        """Owned ranges as lanes, each up to the ceiling of its quota; lanes on trial stay `whole`.

        Where nothing limits any lane, ranges stay whole, and the result says where a plan cuts them. With `everything`,
        the time budget limits nothing. `early`: all tasks end their slices when their time is over. The cost of lanes
        in `anew` is forgotten. Partitions of topics `in_order` are not cut (rule: partition-order).
        """
        self._known.forget(anew)
        self.history.saw(ends, self._clock.now_ms())
        known, free = self._known, not self._budget.ms or everything
        pieces = [self._quota(tp, p, ends) for tp, parts in work.items() for p in parts]
        if self._cutting.lanes is None:
            known.cut(pieces, self._cutting.tasks, self._clock.now_ms())
        else:
            known.bounds = lane_bounds(work, ends, self._cutting)
        slot_rows = inf if free else known.slot_rows(early=early)
        if not whole and known.plain and sum(q.rows for q in pieces) <= slot_rows * self._budget.slots:
            self.quotas = tuple(pieces)
            return Allowance(work, self.quotas, replace(self._cutting.at(known.bounds), in_order=in_order))
        self._join_parts(work)
        lanes = [lane for q in pieces for lane in ((q,) if q.tp.topic in in_order else self._cut(q, ends, whole))]
        if not free:
            lanes = known.trials.limited(lanes, in_order)
            search, exact = known.trials.search, early and known.exact
            lanes = [*quotas(lanes, slot_rows, search, self._budget, self._age_ms, known.why, exact=exact)]
        self.quotas = tuple(lanes)
        limited = {tp: tuple(q.piece for q in of_tp) for tp, of_tp in groupby(self.quotas, key=attrgetter("tp"))}
        return Allowance(limited, self.quotas, replace(self._cutting.at({}), in_order=in_order))

    def next_span(self, ends: Mapping[TopicPartition, int], *, everything: bool = False) -> tuple[int, int]:
        """The most offsets of the next batch and of one slot in it, for a member of a group without order.

        A slow key has no lane there, so only the pace of whole batches counts.
        """
        self.history.saw(ends, self._clock.now_ms())
        rows = inf if not self._budget.ms or everything else self._known.slot_rows(early=False)
        density = max((self._known.density((tp, WHOLE)) for tp in ends), default=1.0)
        size = ceil(min(rows / density, ALL_OFFSETS))
        return size * self._budget.slots, size

    def _quota(self, tp: TopicPartition, piece: OwnedRange, ends: Mapping[TopicPartition, int]) -> Quota:
        cell = self._known.cell((tp, piece.hashes))
        return Quota(tp, piece, ends[tp], cell, self._known.rate_ms or 0.0, ceiling(piece, ends[tp]))

    def _tasks(self, work_ms: Iterable[float]) -> int:
        """As many as slots, or as the user requests; fewer where there is little to do."""
        if self._known.rate_ms is None:
            return self._cutting.tasks
        few = ceil(sum(work_ms) / TASK_MS)
        return min(self._cutting.tasks, max(1, few, self._cutting.min_partitions or 0))

    def _join_parts(self, work: OwnedRanges) -> None:
        """A partition whose ranges have met at one position needs no bounds of former suspects."""
        for tp, parts in work.items():
            if len({piece.position for piece in parts}) == 1:
                self._known.trials.together(tp)

    def _cut(self, q: Quota, ends: Mapping[TopicPartition, int], whole: Collection[LaneId]) -> Iterator[Quota]:
        """The lanes of a piece."""
        parts = q.piece.hashes.cut(() if q.lane in whole else self._known.lanes(q.tp))
        if len(parts) == 1:
            yield q
        else:
            yield from (self._quota(q.tp, q.piece.within(hashes), ends) for hashes in parts)

    def _age_ms(self, tp: TopicPartition, position: int) -> float:
        behind = self.history.behind_ms(tp, position, self._clock.now_ms())
        return behind[0] if behind else 0.0

    def pack(
        self,
        end: StreamOffset,
        readable: StreamOffset,
        *,
        apart: Collection[LaneId] = (),
        in_order: Collection[str] = (),
    ) -> tuple[Task, ...]:
        """The tasks of a batch of which `readable` may be read; the same again for the same batch.

        Lanes `apart` share no task with others, unless their topics are joined.
        """
        if self._flight is None or self._flight.offset != end:
            slices = tuple(readable.slices)
            most = self._cutting.max_records_per_partition
            work_ms = {s: self._known.work_ms(s) for s in slices}
            tasks, work = self._tasks(work_ms.values()), work_ms.__getitem__
            if self._cutting.by_offset:
                packed = pack_offsets(slices, tasks=tasks, max_offsets=most, work=work)
            else:
                joined = self._cutting.joined
                on_trial = {s for s in slices if trial_of(s.lane, apart)} if apart and not joined else set()
                groups = ([s for s in slices if s not in on_trial], sorted(on_trial)) if on_trial else (slices,)
                packed = tuple(
                    task
                    for of in groups
                    for task in pack(of, tasks=tasks, max_weight=most, work=work, joined=joined, in_order=in_order)
                )
            self._flight = _Flight(end, packed, self._clock.now_ms())
        return self._flight.tasks

    def learn(
        self,
        offset: StreamOffset,
        reports: Mapping[Slice, SliceCost],
        ends: Ends | None = None,
        *,
        judged: bool = True,
    ) -> Ended | None:
        """Learn from the batch that ended at `offset`, if this process ran one. Any start offset may be passed.

        Without `judged`, its times show nothing: tasks waited for brokers.
        """
        flight, self._flight = self._flight, None
        on_trigger = self._on_trigger()
        if flight is None or flight.offset != offset:
            return None
        now_ms = self._clock.now_ms()
        took = float(now_ms - flight.began_ms)
        warm = self._workers.warm(min(len(flight.tasks), self._budget.slots), flight.began_ms, now_ms)
        batch = BatchCost(with_dropped(tuple(self._loads(flight, reports, ends or {}))), took, warm)
        batch = replace(batch, work_ms=max(0.0, took - min(took, batch.start_ms or 0.0)))
        waited = took > self._budget.ms and abs(took - self._took) <= JITTER_MS
        self._took = took
        if self._budget.ms and judged:
            self._known.learn(batch, now_ms, waited=on_trigger or waited)
        return Ended(batch, took)

    def _on_trigger(self) -> bool:
        """Whether this call and the one before it came as if by Spark's trigger: then the time includes waiting."""
        before, self._on_the_second = self._on_the_second, self._clock.wall_ms() % 1000 < JITTER_MS
        return before and self._on_the_second

    def offsets_of_a_record(self, lane: LaneId) -> int:
        """The number of offsets that contain about one record of a lane."""
        return max(1, ceil(1 / self._known.density(lane)))

    def _loads(self, flight: _Flight, reports: Mapping[Slice, SliceCost], ends: Ends) -> Iterator[Load]:
        """The lanes of a batch with the reports of their tasks; without a report, records are a guess."""
        for number, task in enumerate(flight.tasks):
            for lane, of_lane in groupby(sorted(task), key=attrgetter("lane")):
                slices = tuple(of_lane)
                span = sum(_read_of(s, ends) for s in slices)
                costs = [c for s in slices if (c := reports.get(s)) and c.finished]
                cost = SliceCost.together(costs) if len(costs) == len(slices) else None
                rows = cost.rows if cost else span * self._known.density(lane)
                yield Load(lane, number, max(span, ceil(rows)), rows, cost)


def _read_of(s: Slice, ends: Ends) -> int:
    """The offsets that were read of a slice. If its hashes ended at different offsets, their mean by hashes."""
    if s.topic_partition not in ends:
        return len(s.offsets)
    return round(sum(part.hashes.size * len(part.offsets) for part in slices_to((s,), ends)) / s.hashes.size)
