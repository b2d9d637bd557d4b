"""Cuts a member's lanes by cost, from batch to batch. Remembers each cut, its time, and the lane it came from.

`lane_cuts` makes the decision, and is pure.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from coordinator.cost.batch_cost import LaneId
from coordinator.cost.lane_cuts import (
    LANES_PER_SLOT,
    UNEVEN,
    VERY_UNEVEN,
    Cuts,
    LaneWork,
    cut_between,
    fewer,
    finely,
    more,
)
from coordinator.cost.search import Claim, Search

MERGE_EVERY_MS = 60_000
"""Time between two merges, and between two changes at steady load."""

STEADY = 5
"""After this many batches in a row without a need to change, lanes are cut only for differences beyond chance."""

PART_EVERY = 6
"""Batches between two searches in a lane that is known as slow: a search slows all lanes for about two batches."""


class Cutter:
    """See the module."""

    def __init__(self, slots: int, *, fixed: bool, now_ms: int) -> None:
        self._slots = slots
        self.fixed = fixed
        """Whether the user has fixed the number of lanes: then none is cut."""
        self.cuts: Cuts = {}
        self._parents: dict[LaneId, float] = {}  # cost of a record in the lane that this lane was cut from
        self._quiet_batches = 0  # without a search
        self._merged_at_ms = self._changed_at_ms = now_ms
        self._unchanged = 0  # batches in a row
        self._steady = False

    def finely(self, lanes: Collection[LaneId]) -> dict[LaneId, tuple[LaneId, ...]]:
        """Each lane in parts, so that half of all parts are enough work for all slots."""
        if self.fixed:
            return {lane: (lane,) for lane in lanes}
        most = LANES_PER_SLOT * self._slots / max(1, len({tp for tp, _ in lanes}))
        return {lane: finely(lane, round(most * lane[1].share)) for lane in lanes}

    def part(self, families: Mapping[LaneId, Sequence[LaneId]]) -> None:
        """Cut each of these lanes in these parts."""
        self.cuts = cut_between(self.cuts, families.values())

    def alone(self, lane: LaneId, record_ms: float | None) -> bool:
        """Whether the lane was cut and its records cost no more than before: then it has one key."""
        parent = self._parents.get(lane)
        return parent is not None and (record_ms or 0.0) <= 1.2 * parent

    def cut(self, lanes: Sequence[LaneWork], rate_ms: float | None, now_ms: int, *, exact: bool) -> Search:
        """Cut one lane of a batch if that is worth it, or merge some. Returns the search among halves, if any.

        A record of unknown cost counts as `rate_ms`.
        """
        self._quiet_batches += 1
        patient = None if not exact and self._quiet_batches < PART_EVERY else _mostly_ms(lanes, rate_ms)
        waits = self._steady and now_ms - self._changed_at_ms < MERGE_EVERY_MS
        uneven = VERY_UNEVEN if waits else UNEVEN
        decision = more(self.cuts, lanes, slots=self._slots, healthy_ms=patient, exact=exact, uneven=uneven)
        before, self.cuts = self.cuts, decision.cuts
        if not decision.changed and not waits and now_ms - self._merged_at_ms >= MERGE_EVERY_MS:
            self._merge(lanes, now_ms)
        self._note(now_ms, changed=self.cuts != before, waited=waits)
        return self._parted(decision.parted, decision.halves, exact=exact) if decision.parted else Search()

    def _merge(self, lanes: Sequence[LaneWork], now_ms: int) -> None:
        merged = fewer(self.cuts, lanes, slots=self._slots)
        if merged != self.cuts:
            self.cuts, self._merged_at_ms = merged, now_ms

    def _note(self, now_ms: int, *, changed: bool, waited: bool) -> None:
        """Note the change. If it was too urgent to wait, the load is not steady."""
        if changed:
            self._unchanged, self._changed_at_ms = 0, now_ms
            self._steady &= not waited
        else:
            self._unchanged += 1
            self._steady |= self._unchanged >= STEADY

    def _parted(self, whole: LaneWork, halves: Sequence[LaneId], *, exact: bool) -> Search:
        self._quiet_batches = 0
        cell, record_ms = whole.cell, whole.cell.record_ms or 0.0
        self._parents |= dict.fromkeys(halves, record_ms)
        claim = Claim(cell.density * record_ms, cell.density / 2)
        return Search() if exact else Search.among(dict.fromkeys(halves, claim), some_quick=True)


def _mostly_ms(lanes: Iterable[LaneWork], rate_ms: float | None) -> float | None:
    """The cost of a record in most lanes."""
    costs = sorted(c for x in lanes if (c := x.cell.record_ms if x.cell.sure else rate_ms) is not None)
    return costs[len(costs) // 2] if costs else None
