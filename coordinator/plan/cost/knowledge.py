"""What a member knows of the cost of its lanes, and how it cuts them; improves with each batch.

    costs     density and cost of records, over the hash space of each partition
    trials    slow lanes, where only the time of a whole batch is known
    bounds    lanes that give all tasks about the same work

Has no clock and does no IO: `now_ms` is an argument. Part of `Steering`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import inf

from coordinator.plan.cost.batch_cost import BatchCost, Load, touches
from coordinator.plan.cost.costs import SLOW, Costs
from coordinator.plan.cost.pace import SAFE
from coordinator.plan.cost.profile import Cell
from coordinator.plan.cost.quotas import Budget, Quota, Why
from coordinator.plan.cost.trials import Trials
from coordinator.plan.joined_topics import JoinedNames, of_unit, shared_by_units
from coordinator.plan.lane_bounds import LaneBounds, Piece
from coordinator.progress.slices import LaneId, Slice
from coordinator.values.subscription import TopicPartition

MINUTE_MS = 60_000
"""Time between two changes of lanes at steady load."""

TASK_MS = 50.0
"""Fixed cost of a task before it reads: less work than this justifies neither another task nor, if measured, a lane."""

AHEAD = 1.5
"""Where tasks end by the clock, lanes get this many times the records that should fit the budget."""


class Knowledge:
    """The costs of one member's lanes; see the module."""

    def __init__(self, budget: Budget, concurrency: int, joined: JoinedNames = (), *, fixed: bool) -> None:
        self._budget, self._concurrency, self._joined = budget, concurrency, joined
        self._costs = Costs()
        self.trials = Trials(self._costs, budget.ms, budget.slots, fixed=fixed)
        self.bounds: LaneBounds = {}
        """Of the lanes in the last plan, without those of a search."""
        self._changed_ms = -MINUTE_MS
        self._reading_ms = inf  # least time to read a record
        self._measured_ms: float | None = None  # the cost of most records, where tasks measure it
        self._beside_ms = 0.0

    # -- before a batch ------------------------------------------------------------------------

    @property
    def rate_ms(self) -> float | None:
        """The cost of a record in lanes whose own cost is not known."""
        return self.trials.pace.rate_ms if self._measured_ms is None else self._measured_ms

    @property
    def beside_ms(self) -> float:
        """The part of a batch's time that is not for records, at most half of the budget."""
        if self._measured_ms is not None:
            return min(self._beside_ms, self._budget.ms / 2)
        return 0.0 if self.rate_ms is None else self.trials.pace.beside_ms(self._budget.ms)

    def slot_rows(self, *, early: bool) -> float:
        """Records that a slot may read of lanes that are not slow. `early`: tasks end by the clock."""
        if not self._measured_ms:
            return self.trials.pace.rows(self._budget.ms, early=early)
        return (AHEAD if early else SAFE) * self._budget.ms / self._measured_ms

    @property
    def exact(self) -> bool:
        """Whether tasks measure costs."""
        return self._measured_ms is not None

    @property
    def why(self) -> Why:
        """Why a lane may not read all there is."""
        return Why.START if self.rate_ms is None else Why.BUDGET

    @property
    def plain(self) -> bool:
        """Whether no lane differs from another."""
        return self.trials.none and not self._costs.slow(self.rate_ms)

    def cell(self, lane: LaneId) -> Cell:
        """The known cost of a lane."""
        return self._costs.cell(lane)

    def density(self, lane: LaneId) -> float:
        """Its known records for each offset."""
        return self._costs.mean(lane)[0]

    def work_ms(self, s: Slice) -> float:
        """The expected time of a slice; its records while no cost is known. A suspect on trial counts as healthy."""
        density, record_ms = self._costs.mean(s.lane)
        tried = record_ms is None or touches(s.lane, self.trials.search.trial)
        ms = self.rate_ms if tried else record_ms
        return len(s.offsets) * density * (1.0 if ms is None else max(ms, 1e-6))

    def cut(self, work: Iterable[Quota], tasks: int, now_ms: int) -> None:
        """Cut partitions anew where that evens out the work, seldom within a minute; not while suspects are tried."""
        if self.trials.search.groups:
            return
        pieces = defaultdict[TopicPartition, list[Piece]](list)
        for quota in work:
            pieces[quota.tp] += self._pieces(quota)
        soon = now_ms - self._changed_ms < MINUTE_MS
        bounds = shared_by_units(pieces, tasks, self.bounds, self._joined, soon=soon, least=self._least)
        if bounds != self.bounds and self.rate_ms is not None:
            self._changed_ms = now_ms
        self.bounds = bounds

    @property
    def _least(self) -> float:
        """The work that holds up others, where tasks measure it."""
        return TASK_MS if self.exact else 0.0

    def _pieces(self, quota: Quota) -> Iterator[Piece]:
        ms = 1.0 if self.rate_ms is None else self.rate_ms
        for c in self._costs.cells(quota.lane, quota.cell):
            record_ms = ms if c.record_ms is None else c.record_ms
            work = quota.span * c.density * record_ms
            yield Piece(c.hashes, work, record_ms > SLOW * ms and max(record_ms, work) > self._least)

    def lanes(self, tp: TopicPartition) -> tuple[int, ...]:
        """The first hashes of the lanes of a partition, but the first one's."""
        bounds = self.bounds.get(tp, ())
        parts = {bound for partner in of_unit(tp, self._joined) for bound in self.trials.bounds(partner)}
        return tuple(sorted({*bounds, *parts})) if parts else bounds

    def forget(self, lanes: Iterable[LaneId]) -> None:
        """These lanes were away: nothing is known of their cost. A first batch is small without that."""
        for lane in lanes if self.rate_ms is not None else ():
            self._costs.put(lane, None)
            self.trials.away(lane)

    # -- after a batch -------------------------------------------------------------------------

    def learn(self, batch: BatchCost, now_ms: int, *, waited: bool) -> None:
        """Learn the cost of a batch. `waited` where its time may include waiting for a trigger."""
        if batch.warm and (seen := batch.reading_ms) is not None:
            self._reading_ms = min(self._reading_ms, seen)
        known = self._costs.slow(self.rate_ms)
        reading_ms = self._reading_ms if self._reading_ms < inf else 0.0
        self._costs.learn(batch, concurrency=self._concurrency, reading_ms=reading_ms)
        self.trials.grow(batch)
        if batch.exact:
            self._measure(batch, reading_ms, waited=waited)
        else:
            self.trials.learn(batch, known, now_ms, waited=waited)

    def _measure(self, batch: BatchCost, reading_ms: float, *, waited: bool) -> None:
        """Learn what tasks have measured, and the time of the batch beside that."""

        def ms(load: Load) -> float:
            return load.rows * reading_ms + batch.slot_ms(load, self._concurrency)

        self._measured_ms = self._costs.of_most({load.lane[0] for load in batch.reported})
        if batch.warm and not waited:
            self._beside_ms += (max(0.0, batch.work_ms - batch.most(ms)) - self._beside_ms) / 2
