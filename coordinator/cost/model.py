"""What a member has learned of the cost of its lanes, and how it cuts them: one guess, made better batch by batch.

    profiles   how dense, and how dear a record, over the hash space of each partition
    rate_ms    what a record costs where all lanes are alike
    search     suspects that are tried in turn, where only the clock tells
    cuts       where lanes are cut by cost

Holds no clock and does no IO: `now` is an argument. Part of `Steering`.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from coordinator.cost.batch_cost import BatchCost, LaneId, Load, cell_in
from coordinator.cost.lane_cuts import COSTLY, LANES_PER_SLOT, Cuts, LaneWork, cut_between, fewer, finely, more
from coordinator.cost.learning import cleared, forgotten, learned, proven, reconsidered
from coordinator.cost.overhead import LOOK_BACK, Point, healthy_ms
from coordinator.cost.profile import UNKNOWN, Cell, Profile
from coordinator.cost.quotas import AgeMs, Budget, Quota, Why, all_there_is, quotas
from coordinator.cost.search import ASIDE, TRIAL, Claim, Finding, Search, tried
from coordinator.plan.planning import Piece
from coordinator.progress.slices import Slice
from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition

MERGE_EVERY_MS = 60_000
"""Between two merges: at steady load there is at most one change a minute."""

PART_EVERY = 6
"""Batches from one search in a lane that is known as slow to the next: each costs all lanes a part of two batches."""

FULL = 0.8
"""A batch that takes so much of the budget is about as long as one may be."""

NOISE = 3.0
"""So many times the noise is no chance."""

LONGEST_PEACE_MS = 16 * MERGE_EVERY_MS
"""The longest time without a new search after lanes have turned out to be alike; it doubles from a minute."""


class CostModel:
    """See the module."""

    def __init__(self, budget: Budget, concurrency: int, *, fixed: bool, now_ms: int) -> None:
        self._whole, self._concurrency = budget, concurrency
        self._fixed = fixed  # the user has fixed the number of lanes: none is cut
        self._profiles: dict[TopicPartition, Profile] = {}
        self._cells: dict[LaneId, Cell] = {}  # of lanes that were asked for, as of ...
        self._cells_of = self._profiles
        self._search = Search()
        self._found = False  # a slow lane, by the search that goes on or was the last
        self._parents: dict[LaneId, float] = {}  # what a record of the lane cost that was cut for this one
        self._peace_ms, self._peace_until_ms = MERGE_EVERY_MS, 0
        self._merged_at_ms = now_ms
        self._reading_ms: float | None = None  # what a record takes to be read
        self._quiet_batches = 0  # without a search
        self._seen: deque[Point] = deque(maxlen=LOOK_BACK)  # the last batches, of which the clock tells
        self._untold = 0  # batches in a row of which the clock tells nothing
        self.overhead_ms = 0.0
        """What Spark itself takes of a batch with all tasks; it is not in `BatchCost.work_ms` ..."""
        self.start_ms = 0.0
        """... nor is what it mostly takes until they hand records on, where tasks tell that."""
        self.noise_ms = 0.0
        """By so much batches take more or less than is known why: less is no reason to suspect anybody."""
        self._beside_ms = 0.0  # what else a batch takes beside the work on records, where tasks have measured that
        self.rate_ms: float | None = None
        self.cuts: Cuts = {}
        self.quotas: tuple[Quota, ...] = ()
        self._bounds: tuple[int, ...] = ()  # where the lanes begin that are in each of them
        self._read: tuple[tuple[Quota, ...], tuple[int, ...]] = (
            (),
            (),
        )  # both, as they were for the last batch that ended
        self._before: tuple[tuple[Quota, ...], tuple[int, ...]] = (), ()  # and for the one before

    # -- before a batch ------------------------------------------------------------------------

    def grant(
        self, lanes: Sequence[tuple[TopicPartition, Piece]], ends: Mapping[TopicPartition, int], age_ms: AgeMs
    ) -> None:
        """Give every lane its quota of the next batch; suspects whose turn it is not get none."""
        if self._search.groups:
            self._search = self._search.only([(tp, p.hashes) for tp, p in lanes if p.waits(ends[tp])])
        granted = partial(quotas, lanes, ends, self.cell, self.rate_ms or 0.0, self._budget, age_ms=age_ms)
        found = granted(self._search)
        if self._search.groups and not any(q.span for q in found):
            self._search = Search()
            found = granted(self._search)
        self._now_granted(found)

    def grant_all(
        self,
        pieces: Iterable[tuple[TopicPartition, Piece]],
        ends: Mapping[TopicPartition, int],
        bounds: tuple[int, ...],
    ) -> bool:
        """Give the lanes that begin at `bounds` all there is, if nothing bounds any of them; whether that is so."""
        if self._search.groups or self._search.doubted or self.cuts:
            return False
        granted = all_there_is(pieces, ends, self.cell, self._profile, self.rate_ms or 0.0, self._budget)
        if granted is not None:
            self._now_granted(granted, bounds)
        return granted is not None

    def _now_granted(self, quotas: tuple[Quota, ...], bounds: tuple[int, ...] = ()) -> None:
        self.quotas, self._bounds = quotas, bounds

    def _profile(self, tp: TopicPartition) -> Profile:
        return self._profiles.get(tp, UNKNOWN)

    def cell(self, lane: LaneId) -> Cell:
        """What is known of a lane."""
        if lane[0] not in self._profiles:
            return _unknown(lane[1])
        if self._cells_of is not self._profiles:
            self._cells, self._cells_of = {}, self._profiles
        cell = self._cells.get(lane)
        if cell is None:
            cell = self._cells[lane] = cell_in(self._profiles, lane)
        return cell

    def forget(self, lanes: Iterable[LaneId]) -> None:
        """Know no more what records of these lanes cost."""
        for lane in lanes:
            if lane[0] in self._profiles:
                self._profiles, self._search = forgotten(self._profiles, lane), Search()

    @property
    def _budget(self) -> Budget:
        """What is left of the budget for records, at least half of it."""
        whole = self._whole.ms
        return replace(self._whole, ms=max(whole / 2, whole - self.start_ms - self.overhead_ms - self._beside_ms))

    @property
    def searching(self) -> bool:
        """Whether suspects are placed in different batches."""
        return bool(self._search.groups)

    def busy_with_slow(self, batch: BatchCost) -> bool:
        """Whether lanes that are slow, or are tried, may be why a batch took as long as it did."""
        return self.searching or batch.expected_ms(self._profiles, 0.0) > self._budget.ms / 4

    def work_ms(self, s: Slice) -> float:
        """What a slice should take; in proportion to its records while nothing is known."""
        lane = s.lane
        tried = bool(self._search.groups) and lane in self._search.trial
        if tried and self._search.alone(self._budget.slots):
            return ASIDE * self._budget.ms
        cell = self.cell(lane)
        ms = self.rate_ms if tried or cell.record_ms is None else cell.record_ms  # on trial it is healthy until then
        return len(s.offsets) * cell.density * (1.0 if ms is None else max(ms, 1e-6))

    def alike(self, tp: TopicPartition) -> bool:
        """Whether all keys of a partition cost the same, as far as is known."""
        return not self._search.groups and len(self._profile(tp)) == 1

    # -- after a batch -------------------------------------------------------------------------

    def quiet(self, work_ms: float) -> bool:
        """Whether a batch has nothing to teach: it took little, and nobody was kept short."""
        learning = self.rate_ms is None or bool(self._search.groups or self.cuts)
        return not learning and work_ms < self._budget.ms / 10 and all(q.why is Why.NOTHING for q in self.quotas)

    def learn(self, batch: BatchCost, now_ms: int) -> None:
        """Take in what a batch has cost."""
        self._read, self._before = (self.quotas, self._bounds), self._read
        exact = batch.exact(self._concurrency)
        before, searching = self._profiles, self.searching
        self._count(batch)
        self._untold = 0 if batch.clock_tells or exact else self._untold + 1
        if not batch.warm or self._untold == 1:  # once is chance
            return
        if batch.fullest and batch.clock_tells and not exact:
            before_ms, self.rate_ms = self.rate_ms or 0.0, self._rate(batch)
            self._profiles = reconsidered(self._profiles, batch, rate_ms=self.rate_ms, healthy_ms=COSTLY * self.rate_ms)
            self._suspect(batch, before, before_ms, now_ms)
        else:
            self._search = Search()  # a batch that tells nothing: nobody shall wait in vain
            self.rate_ms = self.rate_ms if batch.clock_tells else None
        if not self._fixed and not searching and not self._search.groups:  # a trial's batch is not what lanes carry
            behind = self._falling_behind()
            self._cut([self._lane_work(x, x.lane in behind) for x in batch.lanes], now_ms, exact=exact)

    def _count(self, batch: BatchCost) -> None:
        """Learn of records: how dense they are, and of each lane its own what it cost, where a task has measured that.

        Reading is shared by all lanes, and begins with what no record is the reason for: so the least that was ever
        seen. What is more counts as beside the records.
        """
        if batch.warm and (seen := batch.reading_ms) is not None:
            self._reading_ms = seen if self._reading_ms is None else min(seen, self._reading_ms)
        beside_ms = batch.beside_ms(self._reading_ms or 0.0, self._concurrency)
        if beside_ms is not None and batch.warm and not batch.maybe_waited:
            self._beside_ms += (beside_ms - self._beside_ms) / 2
        of = partial(learned, budget_ms=self._budget.ms, concurrency=self._concurrency)
        self._profiles = of(self._profiles, batch, reading_ms=self._reading_ms or 0.0)

    def _rate(self, batch: BatchCost) -> float:
        """What a healthy record takes, by the last batches and what is known by now of Spark's own time."""
        self._seen.append((batch.fullest, batch.work_ms + self.overhead_ms))
        seen = healthy_ms(self._seen, self.overhead_ms, self.noise_ms)
        return seen if seen is not None else self.rate_ms or batch.work_ms / batch.fullest

    def _suspect(self, batch: BatchCost, before: Mapping[TopicPartition, Profile], rate: float, now_ms: int) -> None:
        if not self._search.groups or self._search.astray(batch, self._budget.ms):
            known = rate > 0 and batch.work_ms > 1.5 * batch.expected_ms(before, rate)
            self._seek(self._suspects(batch, before, rate, now_ms), known)
            self._found = False
            if batch.work_ms > self._budget.ms and len(batch.lanes) == 1:  # nobody else is slow: all of it is, by now
                self._seen.clear()
                self.rate_ms = self._rate(batch)
            return
        healthy_ms = batch.expected_ms(before, rate, alike=self._search.trial)
        finding = tried(self._search, batch, rate, healthy_ms, self.noise_ms)
        for lane in finding.slow:
            claim, density = finding.search.claims[lane], self.cell(lane).density
            self._profiles = proven(self._profiles, lane, claim.record_ms(density, rate))
        self._clear(finding, batch)
        if finding.even:
            self._seen.clear()
            self.rate_ms = self._rate(batch)
        self._found = self._found or bool(finding.slow)
        if self._found:
            self._peace_ms = MERGE_EVERY_MS
        elif not self._search.groups:
            self._peace_until_ms = now_ms + self._peace_ms
            self._peace_ms = min(2 * self._peace_ms, LONGEST_PEACE_MS)

    def _clear(self, finding: Finding, batch: BatchCost) -> None:
        """Clear lanes that were quick; of lanes known as slow none before it is proven which of them it is."""
        quick = (*finding.search.doubted, *finding.quick)
        doubted = () if finding.slow else tuple(x for x in quick if self.cell(x).sure)
        for lane in quick:
            if lane not in doubted:
                self._profiles = cleared(self._profiles, lane, batch.rows_of(lane))
        self._search = replace(finding.search, doubted=doubted) if finding.search.groups else Search()

    def _seek(self, claims: Mapping[LaneId, Claim], known: bool) -> None:
        """Search among lanes, cut finely so that half of them are enough work for all slots."""
        if claims and not self._fixed:
            most = LANES_PER_SLOT * self._budget.slots / len({tp for tp, _ in claims})
            parts = {lane: finely(lane, round(most * lane[1].share)) for lane in claims}
            self.cuts = cut_between(self.cuts, parts.values())
            claims = {part: self._part(lane, part, claims[lane]) for lane, of in parts.items() for part in of}
        self._search = Search.among(claims, some_quick=known)

    def _part(self, lane: LaneId, part: LaneId, claim: Claim) -> Claim:
        """The claim of a lane as that of a part of it."""
        return Claim(claim.ms, claim.others + self.cell(lane).density - self.cell(part).density)

    def _suspects(
        self, batch: BatchCost, before: Mapping[TopicPartition, Profile], rate: float, now_ms: int
    ) -> dict[LaneId, Claim]:
        """The claims of lanes that may be why a batch took long; none where lanes known as slow explain it.

        A batch within its budget makes suspects only where others have shown that records need not cost so much.
        """
        explained = batch.work_ms <= 1.3 * batch.expected_ms(before, 0.0)
        over = batch.work_ms - self.noise_ms > FULL * self._budget.ms and now_ms >= self._peace_until_ms
        expected_ms = batch.expected_ms(before, rate or self.rate_ms or 0.0)
        dear = batch.work_ms > max(self._budget.ms / 2, 1.5 * expected_ms + NOISE * self.noise_ms)
        drowned = (TRIAL - ASIDE) * self._budget.ms < NOISE * self.noise_ms and batch.work_ms < 1.5 * self._budget.ms
        if explained or drowned or not (over or dear):
            return {}
        return {
            x.lane: Claim(batch.work_ms / x.span, batch.rows_beside(x) / x.span) for x in batch.lanes if x.rows >= 1
        }

    def _cut(self, lanes: Sequence[LaneWork], now_ms: int, *, exact: bool) -> None:
        healthy = self._healthy_ms(lanes)
        self._quiet_batches += 1
        patient = None if not exact and self._quiet_batches < PART_EVERY else healthy
        decision = more(self.cuts, lanes, slots=self._budget.slots, healthy_ms=patient, exact=exact)
        self.cuts = decision.cuts
        if decision.parted:
            self._quiet_batches = 0
            self._parents |= dict.fromkeys(decision.halves, decision.parted.cell.record_ms or 0.0)
            whole = decision.parted.cell
            claim = Claim(whole.density * (whole.record_ms or 0.0), whole.density / 2)
            self._search = Search() if exact else Search.among(dict.fromkeys(decision.halves, claim), some_quick=True)
        if not decision.changed and now_ms - self._merged_at_ms >= MERGE_EVERY_MS:
            merged = fewer(self.cuts, lanes, slots=self._budget.slots)
            if merged != self.cuts:
                self.cuts, self._merged_at_ms = merged, now_ms

    def _lane_work(self, load: Load, behind: bool) -> LaneWork:
        cell = self.cell(load.lane)
        ms = cell.record_ms if cell.record_ms is not None else self.rate_ms or 0.0
        parent = self._parents.get(load.lane)
        alone = parent is not None and (cell.record_ms or 0.0) <= 1.2 * parent
        keys = load.cost.keys if load.cost else ()
        return LaneWork(load.lane, replace(cell, record_ms=ms), load.rows * ms, keys, cell.sure and behind, alone)

    def _falling_behind(self) -> frozenset[LaneId]:
        """The lanes whose lag has not become less since the batch before, and is more than they may read."""
        late = [q for q in self.quotas if q.lag > 2 * q.span]
        before, bounds = self._before if late else ((), ())
        lags = {lane.lane: lane.lag for q in before for lane in q.cut(bounds)}
        return frozenset(q.lane for q in late if lags.get(q.lane, q.lag + 1) <= q.lag)

    def _healthy_ms(self, lanes: Iterable[LaneWork]) -> float | None:
        """What a record of most lanes costs."""
        costs = sorted(c for x in lanes if (c := x.cell.record_ms if x.cell.sure else self.rate_ms) is not None)
        return costs[len(costs) // 2] if costs else None


@lru_cache(maxsize=16_384)
def _unknown(hashes: HashRange) -> Cell:
    """The cell of a lane in a partition of which nothing is known; partitions by the thousand are cut alike."""
    return UNKNOWN[0].within(hashes)
