"""Sets how far each lane may read in the next batch, and the reason.

    lane            backlog 9,000 records    quota: all there is; a task ends by the clock
    all lanes       more than fits, behind the read?  partitions share what fits, their lanes end at one offset
    slow lanes      share the time that the others leave, or a reserved part; those furthest behind come first
    suspects        some are read, the others wait (see `search`)

Pure. A quota becomes a ceiling of the lane's piece; the planner knows nothing else of it.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf, sqrt
from typing import NamedTuple, TypeVar

from coordinator.plan.cost.batch_cost import touches
from coordinator.plan.cost.costs import SLOW, most_ms
from coordinator.plan.cost.pace import SAFE
from coordinator.plan.cost.profile import Cell
from coordinator.plan.cost.search import ASIDE, TRIAL, Search
from coordinator.plan.planning import OwnedRange, level
from coordinator.progress.slices import LaneId
from coordinator.values.subscription import TopicPartition

LEAST = 0.35
"""Mean records of the smallest quota. With rare records, one batch of twenty gets two at once."""

FOR_SLOW = 0.25
"""The part of the slots for all slow lanes together, even if the others could fill all slots."""


class Why(StrEnum):
    """The limit on a lane's batch."""

    NOTHING = "all there is"
    BUDGET = "budget"
    START = "slow start"
    TRIAL = "suspect, on trial"
    SUSPECT = "suspect, waits"
    TURN = "older lanes first"
    CEILING = "ceiling"


AgeMs = Callable[[TopicPartition, int], float]
"""The age of the record at an offset of a partition, or of the first record after it."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The intended time of a batch, and its number of slots."""

    ms: float
    slots: int


class Quota(NamedTuple):
    """A lane's piece with its ceiling, its expected work, and the reason of its limit. There are very many quotas.

    Or a piece that is not yet cut in lanes, where nothing limits them.
    """

    tp: TopicPartition
    piece: OwnedRange
    end: int
    cell: Cell
    rate_ms: float  # cost of a record where the lane's cost is unknown
    why: Why = Why.NOTHING

    @property
    def lane(self) -> LaneId:
        """Its lane."""
        return self.tp, self.piece.hashes

    @property
    def lag(self) -> int:
        """Offsets to the end of the log."""
        return max(0, self.end - self.piece.position)

    @property
    def span(self) -> int:
        """Offsets it may read."""
        return max(0, self.piece.reach(self.end) - self.piece.position)

    @property
    def rows(self) -> float:
        """Records it may read."""
        return self.span * self.cell.density

    @property
    def work_ms(self) -> float:
        """Its expected time."""
        return self.rows * self.record_ms

    @property
    def record_ms(self) -> float:
        """The known cost of its records."""
        return self.rate_ms if self.cell.record_ms is None else self.cell.record_ms

    def cut(self, bounds: tuple[int, ...]) -> "Iterator[Quota]":
        """The quota of each lane, if lanes are cut at these bounds."""
        for hashes in self.piece.hashes.cut(bounds) if bounds else (self.piece.hashes,):
            yield self._replace(piece=self.piece.within(hashes), cell=self.cell.within(hashes))

    def within(self, records: float, why: Why) -> "Quota":
        """The same for this many records: at least one where they are dense, or a span that seldom has two."""
        return self.to(self.piece.position + max(1.0, max(records, LEAST) / self.cell.density), why)

    def to(self, offset: float, why: Why) -> "Quota":
        """The same up to this offset."""
        if offset >= self.piece.reach(self.end):
            return self
        p = self.piece
        lower = OwnedRange(p.hashes, p.position, p.epoch, max(int(offset), p.position), p.ics)
        return Quota(self.tp, lower, self.end, self.cell, self.rate_ms, why)  # `_replace` is slow


def ceiling(piece: OwnedRange, end: int) -> Why:
    """Whether its ceiling limits a piece."""
    return Why.NOTHING if piece.ceiling is None or piece.ceiling >= end else Why.CEILING


def slow_lanes(lanes: Sequence[Quota]) -> tuple[Quota, ...]:
    """The lanes known to be slow: their records cost a multiple of most records of these lanes."""
    most = SLOW * most_ms([(q.record_ms, q.cell.density) for q in lanes if q.record_ms])
    return tuple(q for q in lanes if q.cell.record_ms is not None and q.record_ms > most)


def quotas(
    lanes: Sequence[Quota],
    slot_rows: float,
    search: Search,
    budget: Budget,
    age_ms: AgeMs,
    why: Why,
    *,
    exact: bool,
) -> tuple[Quota, ...]:
    """The lanes with their limits. A slot may read `slot_rows` records of lanes that are not slow; `why` names that.

    Where costs are `exact`, tasks end by the clock, so a quota need not allow for chance.
    """
    if search.groups:
        lanes = tuple(_searched(q, search, budget) for q in lanes)
        slot_rows *= ASIDE
    slow = {q.lane: q for q in slow_lanes(lanes) if q.why is not Why.SUSPECT}
    if not slow:
        return tuple(leveled(lanes, slot_rows * budget.slots, slot_rows, why))
    others = [q for q in lanes if q.lane not in slow]
    whole_ms = SAFE * budget.slots * budget.ms
    reserved_ms = min(FOR_SLOW * whole_ms, sum(min(q.work_ms, budget.ms) for q in slow.values()))
    limited = {q.lane: q for q in leveled(others, slot_rows * (budget.slots - reserved_ms / budget.ms), slot_rows, why)}
    left_ms = max(reserved_ms, whole_ms - sum(q.work_ms for q in limited.values()))
    limited |= {q.lane: q for q in _in_turn(slow.values(), left_ms, budget, age_ms, exact=exact)}
    return tuple(limited[q.lane] for q in lanes)


def _searched(quota: Quota, search: Search, budget: Budget) -> Quota:
    """A suspect on trial reads so much that it shows if its claim is right; the others wait."""
    added_ms = search.added_ms(quota.lane, quota.cell.density, quota.rate_ms)
    if added_ms is None:
        return quota.to(0, Why.SUSPECT) if touches(quota.lane, search.held) else quota
    most = max(1.0, search.groups[0].pace * (TRIAL - ASIDE) * budget.ms / max(added_ms, 1e-9))
    healthy = quota._replace(cell=replace(quota.cell, record_ms=None))
    return healthy.to(quota.piece.position + most, Why.TRIAL)._replace(why=Why.TRIAL)


def leveled(lanes: Sequence[Quota], rows: float, slot_rows: float, why: Why) -> Iterator[Quota]:
    """The lanes with this many records together: partitions share them, and a partition's lanes end at one offset.

    A partition gets at most `slot_rows` for each lane, so that no lane is more than a slot's work.

    So the lanes of a partition stay together, and a host fetches their records once.
    """
    if rows == inf or sum(q.rows for q in lanes) <= rows:
        yield from lanes
        return
    of_tp: defaultdict[TopicPartition, list[Quota]] = defaultdict(list)
    for quota in lanes:
        of_tp[quota.tp].append(quota)
    shares = fair({tp: sum(min(q.rows, slot_rows) for q in of) for tp, of in of_tp.items()}, rows)
    ends = {
        tp: level([(q.piece.position, q.piece.reach(q.end), q.cell.density) for q in of], of[0].end, shares[tp])
        for tp, of in of_tp.items()
    }
    for q in lanes:
        yield q.to(ends[q.tp], q.why if q.why is Why.TRIAL else why)


Key = TypeVar("Key", bound=Hashable)


def fair(wants: Mapping[Key, float], total: float) -> dict[Key, float]:
    """A share of the total for each: what it wants, or as much as any other that wants more."""
    shares: dict[Key, float] = {}
    for i, (key, want) in enumerate(sorted(wants.items(), key=lambda wanted: wanted[1])):
        shares[key] = min(want, total / (len(wants) - i))
        total -= shares[key]
    return shares


def _in_turn(lanes: Iterable[Quota], left_ms: float, budget: Budget, age_ms: AgeMs, *, exact: bool) -> Iterator[Quota]:
    """Slow lanes share this time, each in one slot. Without time for a record of each, the oldest come first."""
    slow = sorted(lanes, key=lambda q: (-age_ms(q.tp, q.piece.position), -q.lag, q.lane))
    shares = fair({q.lane: min(q.work_ms, budget.ms) for q in slow}, left_ms)
    for quota in slow:
        share = min(max(shares[quota.lane], quota.record_ms), quota.work_ms)
        records = share / quota.record_ms
        records -= 0.0 if exact else sqrt(records)  # the number of rare records varies by chance
        yield quota.within(records, Why.BUDGET) if left_ms > 0 else quota.to(0, Why.TURN)
        left_ms -= share
