"""Looks for slow lanes by the clock: behind the read only the time of a whole batch is known.

    a batch too long     the lanes that it read are suspects (see `search`)
    a batch as usual     it shows what records of healthy lanes cost (see `pace`)
    a slow lane          known by its cost from then on, until its batches are quick again

Lanes that are cleared start small, and read twice as much in each batch: where slow records are rare, a suspect may be
cleared by chance. Has no clock: times are arguments.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from math import inf

from coordinator.plan.cost.batch_cost import BatchCost, Load, touch, touches
from coordinator.plan.cost.costs import SLOW, Costs
from coordinator.plan.cost.pace import SAFE, START_RECORDS, Pace
from coordinator.plan.cost.quotas import Quota, Why
from coordinator.plan.cost.search import GROWTH, PROOF, CostClaim, Finding, Search, tried
from coordinator.plan.lane_bounds import FINEST
from coordinator.progress.slices import LaneId
from coordinator.values.subscription import TopicPartition

PEACE_MS = 600_000
"""Time without a search for keys that are a little slow, after one: it has shown what healthy records cost."""

MOST_PATIENCE = 6.0
"""Most quick batches that clear a group of suspects."""

PARTS = 4
"""Suspects for each slot, at least: so that half of them are enough work for all slots."""

CHANCE = 2
"""So many batches in a row may end by chance as if on a trigger."""

Known = Mapping[LaneId, float]
"""The cost of a record in the slow lanes of a batch."""


class Trials:
    """The search for slow lanes of one member; see the module."""

    def __init__(self, costs: Costs, budget_ms: float, slots: int, *, fixed: bool) -> None:
        """`fixed`: lanes may not be cut."""
        self._costs, self._budget_ms, self._slots, self._fixed = costs, budget_ms, slots, fixed
        self.pace = Pace()
        self.search = Search()
        self._small: dict[LaneId, int] = {}  # the most offsets of lanes that start small, in the next batch
        self._parts: dict[TopicPartition, set[int]] = {}  # bounds of suspects, also of former ones that differ
        self._patience, self._peace_until_ms = PROOF, 0
        self._unclear = 0  # batches in a row whose time does not count

    # -- before a batch ------------------------------------------------------------------------

    @property
    def none(self) -> bool:
        """Whether no lane is treated in another way than the others."""
        return not (self.search.groups or self._small or self._parts)

    def bounds(self, tp: TopicPartition) -> Collection[int]:
        """Where a partition is cut for the search."""
        return self._parts.get(tp, ())

    def limited(self, lanes: list[Quota], in_order: Collection[str]) -> list[Quota]:
        """The lanes, some of them small. A search goes on without suspects that have nothing to read.

        Nor has it suspects of topics `in_order`: all lanes of such a partition end together, so none can wait alone.
        """
        if self._small:
            lanes = [q.to(q.piece.position + self._span(q.lane), Why.START) for q in lanes]
        if self.search.groups:
            self.search = self.search.only({q.lane for q in lanes if q.span and q.tp.topic not in in_order})
        return lanes

    def _span(self, lane: LaneId) -> float:
        return min((most for small, most in self._small.items() if touch(small, lane)), default=inf)

    def away(self, lane: LaneId) -> None:
        """A lane was away: it starts small."""
        rows = START_RECORDS * self._slots * lane[1].share
        self._small[lane] = max(1, int(rows / self._costs.cell(lane).density))

    def together(self, tp: TopicPartition) -> None:
        """All lanes of a partition have the same position: without a search, none needs to differ."""
        if not self.search.groups:
            self._parts.pop(tp, None)

    # -- after a batch -------------------------------------------------------------------------

    def learn(self, batch: BatchCost, known: Known, now_ms: int, *, waited: bool) -> None:
        """Learn from the time of a batch, in which these lanes were `known` to be slow before.

        `waited` where the time may include waiting for a trigger.
        """
        self.pace = replace(self.pace, thinned=batch.thinned or self.pace.thinned)
        if waited:
            self._unclear += 1
            if self._unclear > CHANCE:
                self.pace, self.search = self.pace.unclear(batch.fullest), Search()
            return
        self._unclear = 0
        if not batch.warm:
            self.pace = self.pace.cold(batch.fullest, batch.work_ms, self._budget_ms)
        elif batch.fullest >= 1 or self.search.groups:  # a trial without records is quick, and moves on
            self._judge(batch, _of(batch, known, self.search.trial), now_ms)

    def grow(self, batch: BatchCost) -> None:
        """Lanes that started small may read twice as much, until that limits them no more."""
        most = max((load.span for load in batch.loads), default=0)
        for lane, span in tuple(self._small.items()):
            read = max((load.span for load in batch.of((lane,))), default=0)
            if 2 * read > span:
                self._small[lane] = GROWTH * max(1, span)
            if read and span > most:
                del self._small[lane]

    def _judge(self, batch: BatchCost, known: Known, now_ms: int) -> None:
        rate = self.pace.rate_ms or 0.0
        healthy_ms = self.pace.overhead_ms + batch.expected_ms(known, rate)
        self.pace = self.pace.fitting(batch.fullest, batch.work_ms, self._budget_ms)
        if self.search.groups:
            self._try(batch, tried(self.search, batch, rate, healthy_ms, self.pace.noise_ms), now_ms)
            return
        dear = self._dear(batch, healthy_ms)
        if self._suspicious(batch, now_ms, dear=dear):
            self._suspect(batch, known=dear)
        else:
            self._reconsider(batch, known)
            self.pace = (self.pace.anew if dear else self.pace.after)(batch.fullest, batch.work_ms)

    def _suspicious(self, batch: BatchCost, now_ms: int, *, dear: bool) -> bool:
        """Whether lanes of a batch may be slow: it took longer than it should, or than the budget allows.

        Batches of cheap records take the whole budget while there is a backlog: they read all there is.
        """
        alone = self._fixed and len(batch.loads) == 1
        if alone or self.pace.rate_ms is None:
            return False
        full = batch.work_ms - self.pace.noise_ms > SAFE * self._budget_ms
        return dear or (full and self.pace.dear(self._budget_ms) and now_ms >= self._peace_until_ms)

    def _dear(self, batch: BatchCost, healthy_ms: float) -> bool:
        """Whether a batch took longer than its records should, by more than chance."""
        known = self.pace.rate_ms is not None
        return known and batch.work_ms > max(self._budget_ms / 2, 1.5 * healthy_ms + 3 * self.pace.noise_ms)

    def _suspect(self, batch: BatchCost, *, known: bool) -> None:
        """Suspect the lanes of a batch, cut finely; lanes that started small before others."""
        lanes = [load for load in batch.loads if load.rows >= 1]
        small = [load for load in lanes if touches(load.lane, self._small)]
        if small:
            self._be_patient()
        parts = 1 if self._fixed else -(-PARTS * self._slots // max(1, len(small or lanes)))
        claims = {lane: claim for load in small or lanes for lane, claim in _claims(batch, load, parts)}
        self.search = Search.among(claims, self._patience, known=known)
        self._part(claims)
        if not self.search.groups:
            self.pace = self.pace.anew(batch.fullest, batch.work_ms)

    def _try(self, batch: BatchCost, finding: Finding, now_ms: int) -> None:
        """Take over what a trial has shown."""
        before, self.search = self.search, finding.search
        if finding.slow:
            self._find(batch, finding.slow)
        if finding.long:
            self._doubt(batch, before.trial)
        for lane in finding.quick:
            self._clear(lane, max((load.span for load in batch.of((lane,))), default=0))
        if finding.even or (finding.search.some_quick and not before.some_quick):
            self.pace = self.pace.anew(batch.fullest, batch.work_ms)
        elif not finding.slow and finding.search.groups[:1] != before.groups[:1]:
            self.pace = self.pace.quicker(batch.fullest, batch.work_ms)
        if not self.search.groups:
            self._peace_until_ms = now_ms + PEACE_MS
            if not before.found:
                self._be_patient()

    def _be_patient(self) -> None:
        self._patience = min(MOST_PATIENCE, 2 * self._patience)

    def _find(self, batch: BatchCost, lane: LaneId) -> None:
        """A lane is slow. Its halves are suspects next, unless it may have one key."""
        claim, rate, loads = self.search.claims[lane], self.pace.rate_ms or 0.0, batch.of((lane,))
        density = max(sum(load.rows for load in loads) / max(load.span for load in loads), 1e-9)
        self._costs.put(lane, rate + claim.added_ms(density, rate) / density)
        if not self._fixed and lane[1].size > FINEST:
            self.search = self.search.halving(lane, claim)
            self._part(self.search.claims)

    def _doubt(self, batch: BatchCost, trial: Collection[LaneId]) -> None:
        """Lanes that started small may be the slow ones as well: they are suspects again."""
        doubted = {lane: loads[0] for lane in self._small if (loads := batch.of((lane,))) and not touches(lane, trial)}
        for lane in doubted:
            del self._small[lane]
        self.search = self.search.also({lane: CostClaim.of(batch, load) for lane, load in doubted.items()})

    def _reconsider(self, batch: BatchCost, known: Known) -> None:
        """A slow lane took no longer than its batch. One whose records are no longer dear is slow no more."""
        for load in (load for load in batch.loads if load.lane in known and load.rows >= 1):
            before = known[load.lane]
            ms = max(min(before, batch.work_ms / load.rows), before / GROWTH)
            if ms > SLOW * (self.pace.rate_ms or 0.0):
                self._costs.put(load.lane, ms)
            else:
                self._clear(load.lane, load.span)

    def _clear(self, lane: LaneId, span: int) -> None:
        """A lane was quick in so many offsets: it starts from there."""
        self._costs.put(lane, None)
        self._small[lane] = GROWTH * max(1, span)

    def _part(self, lanes: Iterable[LaneId]) -> None:
        for tp, hashes in lanes:
            self._parts.setdefault(tp, set()).update(hashes.edges)


def _of(batch: BatchCost, known: Known, trial: Collection[LaneId]) -> Known:
    """The slow lanes of a batch; a suspect on trial counts as healthy."""
    loads = (load for load in batch.loads if not touches(load.lane, trial))
    return {load.lane: ms for load in loads for lane, ms in known.items() if touch(load.lane, lane)}


def _claims(batch: BatchCost, load: Load, parts: int) -> Iterable[tuple[LaneId, CostClaim]]:
    (tp, h) = load.lane
    for part in h.cut(h.lo + i * h.size // parts for i in range(1, min(parts, h.size))):
        yield (tp, part), CostClaim.of(batch, load, part.size / h.size)
