"""A member's model of the cost of its lanes. It decides how lanes are cut, and improves with each batch.

    profiles   density and cost of records, over the hash space of each partition
    rate_ms    cost of a record where all lanes are alike
    search     suspects that take turns, where only the time of the whole batch is known
    stalls     suspects with a few very slow records
    cutter     cuts of lanes by cost

Has no clock and does no IO: `now` is an argument. Part of `Steering`.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from coordinator.cost.batch_cost import BatchCost, LaneId, Load
from coordinator.cost.cutter import MERGE_EVERY_MS, Cutter
from coordinator.cost.granted import Granted
from coordinator.cost.known import Known
from coordinator.cost.lane_cuts import COSTLY, Cuts, LaneWork
from coordinator.cost.learning import cleared, forgotten, learned, proven, reconsidered
from coordinator.cost.overhead import LOOK_BACK, Point, healthy_ms
from coordinator.cost.profile import Cell, Profile
from coordinator.cost.quotas import AgeMs, Budget, Quota, Why, all_there_is, quotas
from coordinator.cost.search import ASIDE, FULL, NOISE, Claim, Finding, Search, suspects, tried
from coordinator.cost.stalls import STALL, Stalls, offsets_of, stalled
from coordinator.plan.planning import OwnedRange
from coordinator.progress.slices import Slice
from coordinator.subscription import TopicPartition

LONGEST_PEACE_MS = 16 * MERGE_EVERY_MS
"""Longest time without a new search after a search proved lanes alike; the time doubles from a minute."""


class CostModel:
    """The cost model of one member; see the module."""

    def __init__(self, budget: Budget, concurrency: int, *, fixed: bool, now_ms: int) -> None:
        self._whole, self._concurrency = budget, concurrency
        self._cutter = Cutter(budget.slots, fixed=fixed, now_ms=now_ms)
        self._known = Known()
        self._granted = Granted()
        self._search = Search()
        self._stalls = Stalls(fixed=fixed)
        self._any_slow = False  # whether the current or the last search proved a slow lane
        self._peace_ms, self._peace_until_ms = MERGE_EVERY_MS, 0
        self._reading_ms: float | None = None  # time to read a record
        self._seen: deque[Point] = deque(maxlen=LOOK_BACK)  # the last batches whose time counts
        self._unclear = 0  # batches in a row whose time does not count
        self.overhead_ms = 0.0
        """Spark's own time for a batch with all tasks; `BatchCost.work_ms` excludes it ..."""
        self.start_ms = 0.0
        """... and also excludes the usual time until tasks pass on records, where tasks report that."""
        self.noise_ms = 0.0
        """Usual unexplained difference in the time of batches. A smaller excess is no reason to suspect a lane."""
        self._beside_ms = 0.0  # time of a batch beside the work on records, where tasks have measured it
        self.rate_ms: float | None = None

    # -- before a batch ------------------------------------------------------------------------

    def grant(
        self, lanes: Sequence[tuple[TopicPartition, OwnedRange]], ends: Mapping[TopicPartition, int], age_ms: AgeMs
    ) -> None:
        """Set the quota of every lane for the next batch. Suspects that wait get none."""
        waiting = [(tp, p.hashes) for tp, p in lanes if p.waits(ends[tp])] if self.trying else []
        if self._search.groups:
            self._search = self._search.only(waiting)
        of = partial(quotas, ends=ends, cell_of=self.cell, rate_ms=self.rate_ms or 0.0, budget=self._budget)
        granted = of(self._limited(lanes, waiting), search=self._search, age_ms=age_ms)
        if self._search.groups and not any(q.span for q in granted):
            self._search = Search()
            granted = of(self._limited(lanes, waiting), search=self._search, age_ms=age_ms)
        self._granted.set(tuple(self._stalls.named(granted)) if self._stalls.groups else granted)

    def _limited(
        self, lanes: Sequence[tuple[TopicPartition, OwnedRange]], waiting: Collection[LaneId]
    ) -> Sequence[tuple[TopicPartition, OwnedRange]]:
        """The pieces, limited for suspects of a stall, after their turn is decided."""
        if not self._stalls.groups:
            return lanes
        self._stalls = self._stalls.ready(waiting, [(tp, p.hashes) for tp, p in lanes], empty_turn=self.searching)
        return tuple(self._stalls.limited(lanes))

    def grant_all(
        self,
        pieces: Iterable[tuple[TopicPartition, OwnedRange]],
        ends: Mapping[TopicPartition, int],
        bounds: tuple[int, ...],
    ) -> bool:
        """Allow all records of the lanes that begin at `bounds`, and return True, if nothing limits a lane."""
        if self.trying or self._search.doubted or self.cuts:
            return False
        granted = all_there_is(pieces, ends, self.cell, self._known.profile, self.rate_ms or 0.0, self._budget)
        if granted is not None:
            self._granted.set(granted, bounds)
        return granted is not None

    @property
    def quotas(self) -> tuple[Quota, ...]:
        """The quota of each lane in the batch that was planned last, with its reason; or pieces without a limit."""
        return self._granted.quotas

    def cell(self, lane: LaneId) -> Cell:
        """The known cost of a lane."""
        return self._known.cell(lane)

    def forget(self, lanes: Iterable[LaneId]) -> None:
        """Forget the cost of the records of these lanes."""
        for lane in lanes:
            if lane[0] in self._known.profiles:
                self._known.profiles, self._search = forgotten(self._known.profiles, lane), Search()

    @property
    def _budget(self) -> Budget:
        """The budget without Spark's own time, at least half of the budget."""
        whole = self._whole.ms
        return replace(self._whole, ms=max(whole / 2, whole - self.start_ms - self.overhead_ms - self._beside_ms))

    @property
    def cuts(self) -> Cuts:
        """The cuts of lanes by cost."""
        return self._cutter.cuts

    def bounds(self, tp: TopicPartition) -> frozenset[int]:
        """The cuts of a partition's lanes, suspects of a stall included."""
        return self.cuts.get(tp, frozenset()) | self._stalls.bounds(tp)

    @property
    def trying(self) -> bool:
        """Whether there are suspects of any kind."""
        return bool(self._search.groups or self._stalls.groups)

    @property
    def searching(self) -> bool:
        """Whether suspects are placed in different batches."""
        return bool(self._search.groups)

    def busy_with_slow(self, batch: BatchCost) -> bool:
        """Whether slow lanes, or suspects on trial, may explain the time of a batch."""
        tried = self.searching or self._stalls.turn is not None or batch.work_ms > STALL * self._budget.ms
        return tried or batch.expected_ms(self._known.profiles, 0.0) > self._budget.ms / 4

    def work_ms(self, s: Slice) -> float:
        """The expected time of a slice; in proportion to its records while no cost is known."""
        lane, tried = s.lane, self.searching and s.lane in self._search.trial
        if tried and self._search.alone(self._budget.slots):
            return ASIDE * self._budget.ms
        cell = self.cell(lane)
        ms = self.rate_ms if tried or cell.record_ms is None else cell.record_ms  # a suspect on trial counts as healthy
        return len(s.offsets) * cell.density * (1.0 if ms is None else max(ms, 1e-6))

    def alike(self, tp: TopicPartition) -> bool:
        """Whether all keys of a partition have the same known cost."""
        return not self.trying and len(self._known.profile(tp)) == 1

    # -- after a batch -------------------------------------------------------------------------

    def quiet(self, work_ms: float) -> bool:
        """Whether nothing can be learned from a batch: it was short, and no quota cut a lane short."""
        learning = self.rate_ms is None or bool(self.trying or self.cuts)
        return not learning and work_ms < self._budget.ms / 10 and all(q.why is Why.NOTHING for q in self.quotas)

    def learn(self, batch: BatchCost, now_ms: int) -> None:
        """Learn the cost of a batch."""
        self._granted.ended()
        exact = batch.exact(self._concurrency)
        before, trying = self._known.profiles, self.searching or self._stalls.turn is not None
        self._count(batch)
        self._unclear = 0 if batch.clock_valid or exact else self._unclear + 1
        if not batch.warm or self._unclear == 1:  # a single time is chance
            self._stalls = self._stalls.passed_over()
            return
        if batch.fullest and batch.clock_valid and not exact:
            self._judge(batch, before, now_ms)
        else:
            self._search = Search()  # its time does not count: suspects must not wait for it
            self._stalls = Stalls(fixed=self._cutter.fixed) if exact else self._stalls.after(batch)
            self.rate_ms = self.rate_ms if batch.clock_valid else None
        # A trial batch, or a batch mostly of suspects, does not show the work of normal lanes.
        if not self._cutter.fixed and not trying and not self.searching and self._stalls.settled:
            self._cut(batch, now_ms, exact=exact)

    def _judge(self, batch: BatchCost, before: Mapping[TopicPartition, Profile], now_ms: int) -> None:
        """Look for the lanes that made a batch slow, by the costs known `before`. Only its whole time is known."""
        expected_ms = batch.expected_ms(before, self.rate_ms or 0.0)
        claimed_ms = self._search.claimed_ms(batch) if self.searching else 0.0
        if self._stalls.turn is not None:
            self._take_turn(batch, expected_ms)
        elif len(batch.lanes) > 1 and stalled(batch, self._budget.ms, max(expected_ms, claimed_ms), self._seen):
            self._stall(batch)
        else:
            before_ms, self.rate_ms = self.rate_ms or 0.0, self._rate(batch)
            again = partial(reconsidered, rate_ms=self.rate_ms, healthy_ms=COSTLY * self.rate_ms)
            self._known.profiles = again(self._known.profiles, batch)
            if self._stalls.settled:
                self._suspect(batch, before, before_ms, now_ms)
            self._stalls = self._stalls if self.searching else self._stalls.passed_over()

    def _take_turn(self, batch: BatchCost, expected_ms: float) -> None:
        """Learn from a batch in which a group of suspects of a stall was read."""
        if batch.work_ms > max(FULL * self._budget.ms, 1.5 * expected_ms + NOISE * self.noise_ms):
            self._stalls = self._stalls.after(batch, batch.work_ms / self._budget.ms)
        else:
            self.rate_ms = self._rate(batch)
            self._stalls = self._stalls.after(batch)

    def _stall(self, batch: BatchCost) -> None:
        """Suspect all lanes of a batch, cut finely so that half of them are enough work for all slots."""
        lanes = [x.lane for x in batch.lanes if x.rows > 0]
        held = self._search.held  # not in the batch, but a search suspected them already: they may be as slow
        parts = sorted(part for of in self._cutter.finely({*lanes, *held}).values() for part in of)
        self._stalls = self._stalls.suspecting(parts, offsets_of(batch, lanes), batch.work_ms / self._budget.ms)
        self._search = Search()
        self._seen.clear()

    def _count(self, batch: BatchCost) -> None:
        """Learn the density of records and, where a task measured it, the cost of each lane.

        All lanes share the time to read. It includes a start that does not depend on records: so the minimum of all
        batches counts. The rest counts as time beside the records.
        """
        if batch.warm and (seen := batch.reading_ms) is not None:
            self._reading_ms = seen if self._reading_ms is None else min(seen, self._reading_ms)
        beside_ms = batch.beside_ms(self._reading_ms or 0.0, self._concurrency)
        if beside_ms is not None and batch.warm and not batch.maybe_waited:
            self._beside_ms += (beside_ms - self._beside_ms) / 2
        of = partial(learned, budget_ms=self._budget.ms, concurrency=self._concurrency)
        self._known.profiles = of(self._known.profiles, batch, reading_ms=self._reading_ms or 0.0)

    def _rate(self, batch: BatchCost) -> float:
        """The cost of a healthy record, by the last batches and the current estimate of Spark's own time."""
        self._seen.append((batch.fullest, batch.work_ms + self.overhead_ms))
        seen = healthy_ms(self._seen, self.overhead_ms, self.noise_ms)
        return seen if seen is not None else self.rate_ms or batch.work_ms / batch.fullest

    def _suspect(self, batch: BatchCost, before: Mapping[TopicPartition, Profile], rate: float, now_ms: int) -> None:
        if not self._search.groups or self._search.astray(batch, self._budget.ms):
            claims = suspects(
                batch,
                self._budget.ms,
                self.noise_ms,
                known_ms=batch.expected_ms(before, 0.0),
                expected_ms=batch.expected_ms(before, rate or self.rate_ms or 0.0),
                peace=now_ms < self._peace_until_ms,
            )
            self._seek(claims, rate > 0 and batch.work_ms > 1.5 * batch.expected_ms(before, rate))
            self._any_slow = False
            if batch.work_ms > self._budget.ms and len(batch.lanes) == 1:  # a single lane: all of the time is its own
                self._seen.clear()
                self.rate_ms = self._rate(batch)
            return
        healthy_ms = batch.expected_ms(before, rate, alike=self._search.trial)
        finding = tried(self._search, batch, rate, healthy_ms, self.noise_ms)
        for lane in finding.slow:
            claim, density = finding.search.claims[lane], self.cell(lane).density
            self._known.profiles = proven(self._known.profiles, lane, claim.record_ms(density, rate))
        self._clear(finding, batch)
        if finding.even:
            self._seen.clear()
            self.rate_ms = self._rate(batch)
        self._any_slow = self._any_slow or bool(finding.slow)
        if self._any_slow:
            self._peace_ms = MERGE_EVERY_MS
        elif not self._search.groups:
            self._peace_until_ms = now_ms + self._peace_ms
            self._peace_ms = min(2 * self._peace_ms, LONGEST_PEACE_MS)

    def _clear(self, finding: Finding, batch: BatchCost) -> None:
        """Clear lanes that were quick. Of lanes known as slow, clear none before the slow lane is proven."""
        quick = (*finding.search.doubted, *finding.quick)
        doubted = () if finding.slow else tuple(x for x in quick if self.cell(x).sure)
        for lane in quick:
            if lane not in doubted:
                self._known.profiles = cleared(self._known.profiles, lane, batch.rows_of(lane))
        self._search = replace(finding.search, doubted=doubted) if finding.search.groups else Search()

    def _seek(self, claims: Mapping[LaneId, Claim], known: bool) -> None:
        """Search among lanes, cut finely so that half of them are enough work for all slots."""
        parts = self._cutter.finely(claims)
        self._cutter.part(parts)
        claims = {part: self._part(lane, part, claims[lane]) for lane, of in parts.items() for part in of}
        self._search = Search.among(claims, some_quick=known)

    def _part(self, lane: LaneId, part: LaneId, claim: Claim) -> Claim:
        """The claim of a lane, converted to a part of the lane."""
        return Claim(claim.ms, claim.others + self.cell(lane).density - self.cell(part).density)

    def _cut(self, batch: BatchCost, now_ms: int, *, exact: bool) -> None:
        behind = self._granted.falling_behind()
        lanes = [self._lane_work(x, x.lane in behind) for x in batch.lanes]
        self._search = self._cutter.cut(lanes, self.rate_ms, now_ms, exact=exact)

    def _lane_work(self, load: Load, behind: bool) -> LaneWork:
        cell = self.cell(load.lane)
        ms = cell.record_ms if cell.record_ms is not None else self.rate_ms or 0.0
        alone = self._cutter.alone(load.lane, cell.record_ms)
        keys = load.cost.keys if load.cost else ()
        return LaneWork(load.lane, replace(cell, record_ms=ms), load.rows * ms, keys, cell.sure and behind, alone)
