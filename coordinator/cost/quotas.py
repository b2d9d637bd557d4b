"""Sets how far each lane may read in the next batch, and the reason: lanes share the time budget fairly.

    lane            backlog 9,000 records    quota: the records that fit the budget, at least one
    all lanes       more than slots x budget? lanes with the oldest records come first, each with at least one record
    slow lanes      wait for one another: together they get the time that the others leave, or a reserved part

Pure. A quota becomes a ceiling of the lane's piece; the planner knows nothing else of it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from math import sqrt
from operator import attrgetter
from typing import NamedTuple

from coordinator.cost.batch_cost import LaneId, touch
from coordinator.cost.profile import Cell, Profile
from coordinator.cost.search import ASIDE, TRIAL, Search
from coordinator.plan.planning import OwnedRange
from coordinator.subscription import TopicPartition

SAFE = 0.9
"""The part of the budget for a lane of known cost."""

LEAST = 0.35
"""Mean records of the smallest quota. With rare records, one batch of twenty gets two at once."""

FOR_SLOW = 0.25
"""The part of the slots for all slow lanes together, even if the others could fill all slots."""

SLOW = 2.0
"""A lane is slow if its records cost more than this many times the cost of most records of the member."""


class Why(StrEnum):
    """The limit on a lane's batch."""

    NOTHING = "all there is"
    BUDGET = "budget"
    START = "slow start"
    TRIAL = "suspect, on trial"
    SUSPECT = "suspect, waits"
    ASIDE = "aside of a trial"
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
    def work_ms(self) -> float:
        """Its expected time."""
        record_ms = self.record_ms
        return self.span * self.cell.density * record_ms if record_ms else 0.0

    @property
    def record_ms(self) -> float:
        """The known cost of its records."""
        return self.rate_ms if self.cell.record_ms is None else self.cell.record_ms

    def cut(self, bounds: tuple[int, ...]) -> "Iterator[Quota]":
        """The quota of each lane, if lanes are cut at these bounds."""
        for hashes in self.piece.hashes.cut(bounds) if bounds else (self.piece.hashes,):
            yield self._replace(piece=self.piece.within(hashes), cell=self.cell.within(hashes))

    def within(self, records: float, why: Why) -> "Quota":
        """The same for this many records: at least one where they are dense, or a span that seldom has two.

        Densities are guesses. Those of a lane's parts may add up to more than a record for each offset.
        """
        span = max(1.0, max(records, LEAST) / self.cell.density)
        return self if self.piece.position + span >= self.end else self.up_to(span, why)

    def up_to(self, span: float, why: Why) -> "Quota":
        """The same for this many offsets."""
        position = self.piece.position
        if position + span >= self.piece.reach(self.end):
            return self
        ceiling = position + int(span)
        return self._replace(piece=self.piece._replace(ceiling=ceiling), why=why)


def all_there_is(
    pieces: Iterable[tuple[TopicPartition, OwnedRange]],
    ends: Mapping[TopicPartition, int],
    cell_of: Callable[[LaneId], Cell],
    profile_of: Callable[[TopicPartition], Profile],
    rate_ms: float,
    budget: Budget,
) -> tuple[Quota, ...] | None:
    """The quotas of whole pieces, if no lane of theirs can have a limit, however they are cut; else None.

    There may be very many lanes and little to read. Then the model need not visit each lane.
    """
    whole: list[Quota] = []
    left = SAFE * budget.slots * budget.ms
    for tp, piece in pieces:
        quota = Quota(tp, piece, ends[tp], cell_of((tp, piece.hashes)), rate_ms)
        worst = _worst(profile_of(tp), quota)
        left -= worst.work_ms
        if left < 0 or ceiling(piece, quota.end) is not Why.NOTHING or _alone(worst, budget) is not worst:
            return None
        whole.append(quota)
    return tuple(whole)


def _worst(profile: Profile, quota: Quota) -> Quota:
    """An upper bound for the lanes of a piece: more records, the worst cost, the least allowance."""
    if len(profile) == 1:
        return quota
    costs = [quota.rate_ms if cell.record_ms is None else cell.record_ms for cell in profile]
    dense, least = sum(cell.density for cell in profile), min(cell.allowance for cell in profile)
    return quota._replace(cell=replace(quota.cell, density=dense, record_ms=max(costs) or None, allowance=least))


def slow_lanes(lanes: Sequence[Quota]) -> tuple[Quota, ...]:
    """The lanes known to be slow: their records cost a multiple of most records of these lanes."""
    known = sorted((q.record_ms, q.cell.density) for q in lanes if q.record_ms)
    half, most_ms = sum(density for _, density in known) / 2, 0.0
    for record_ms, density in known:
        most_ms, half = record_ms, half - density
        if half <= 0:
            break
    return tuple(q for q in lanes if q.cell.sure and q.record_ms > SLOW * most_ms)


def quotas(
    lanes: Iterable[tuple[TopicPartition, OwnedRange]],
    ends: Mapping[TopicPartition, int],
    cell_of: Callable[[LaneId], Cell],
    rate_ms: float,
    budget: Budget,
    search: Search,
    age_ms: AgeMs,
) -> tuple[Quota, ...]:
    """The quota of every lane of the next batch. The needs of a search come before fairness."""
    wanted = (Quota(tp, p, ends[tp], cell_of((tp, p.hashes)), rate_ms, ceiling(p, ends[tp])) for tp, p in lanes)
    if search.groups or search.doubted:
        alone = tuple(_searched(q, budget, search) for q in wanted)
    else:
        alone = tuple(_alone(q, budget) for q in wanted)
    if search.groups:
        return tuple(_aside(alone, budget, search))
    if sum(q.work_ms for q in alone) <= SAFE * budget.slots * budget.ms:
        return alone
    return tuple(_together(alone, budget, age_ms))


def ceiling(piece: OwnedRange, end: int) -> Why:
    """Whether its ceiling limits a piece."""
    return Why.NOTHING if piece.ceiling is None or piece.ceiling >= end else Why.CEILING


def _searched(quota: Quota, budget: Budget, search: Search) -> Quota:
    if suspect := _one_of(search.trial, quota.lane):
        cell, rate_ms = quota.cell, quota.rate_ms
        quota = quota._replace(cell=replace(cell, record_ms=None), why=Why.TRIAL)  # healthy until proven slow
        added = search.claims[suspect].added_ms(cell.density, rate_ms)
        if search.alone(budget.slots):
            offset_ms = max(added + rate_ms * cell.density, 1e-9)
            return quota.up_to(max(1.0, TRIAL * budget.ms / offset_ms), Why.TRIAL)
        return quota.up_to(max(1.0, (TRIAL - ASIDE) * budget.ms / added), Why.TRIAL) if added > 0 else quota
    return quota.up_to(0, Why.SUSPECT) if _one_of(search.held, quota.lane) else _alone(quota, budget)


def _alone(quota: Quota, budget: Budget) -> Quota:
    cell = quota.cell
    records, why = cell.allowance, Why.START if cell.record_ms is None else Why.BUDGET
    if record_ms := quota.record_ms:
        in_budget = SAFE * budget.ms / record_ms
        in_budget -= sqrt(in_budget)  # the number of rare records varies by chance
        if in_budget <= records:
            records, why = in_budget, Why.BUDGET
    return quota.within(records, why)


def _one_of(lanes: Iterable[LaneId], lane: LaneId) -> LaneId | None:
    return next((x for x in lanes if touch(x, lane)), None)


def _aside(lanes: tuple[Quota, ...], budget: Budget, search: Search) -> Iterator[Quota]:
    """The lanes in a part of the budget, all by the same share. Slots then end early, except a slow suspect's slot."""
    alone = search.alone(budget.slots)
    lanes = tuple(_short(q, ASIDE * budget.ms) for q in lanes)
    total = sum(q.work_ms for q in lanes if not (alone and q.why is Why.TRIAL))
    slots = budget.slots - (len(search.trial) if alone else 0)
    part = min(1.0, ASIDE * budget.ms * slots / total) if total else 1.0
    return (
        q if alone and q.why is Why.TRIAL else q.up_to(max(1.0, part * q.span) if q.span else 0, _aside_why(q))
        for q in lanes
    )


def _short(quota: Quota, ms: float) -> Quota:
    return quota.within(ms / quota.record_ms, _aside_why(quota)) if quota.work_ms > ms else quota


def _aside_why(quota: Quota) -> Why:
    return Why.TRIAL if quota.why is Why.TRIAL else Why.ASIDE


def _together(lanes: tuple[Quota, ...], budget: Budget, age_ms: AgeMs) -> Iterator[Quota]:
    """The oldest records first, until the slots are full. A lane that waits is older next time, so none starves.

    By age, not by lag: a quiet partition is never many records behind.
    """
    slow = {q.lane: q for q in slow_lanes(lanes)}
    others = [q for q in lanes if q.lane not in slow]
    whole = SAFE * budget.slots * budget.ms
    for_slow = max(FOR_SLOW * whole, whole - sum(q.work_ms for q in others))
    for_slow = min(for_slow, sum(q.work_ms for q in slow.values()))
    granted = _in_turn(slow.values(), for_slow, age_ms, waits=True)
    granted |= _level(others, _in_turn(others, whole - for_slow, age_ms, waits=False))
    return (granted[q.lane] for q in lanes)


def _in_turn(lanes: Collection[Quota], left_ms: float, age_ms: AgeMs, *, waits: bool) -> dict[LaneId, Quota]:
    """The oldest first, up to this much work. A lane without time for one record gets one, or none if it `waits`.

    Records that existed at the first look are equally old: of these, the partition with the least work comes first.
    """
    granted: dict[LaneId, Quota] = {}
    behind: defaultdict[TopicPartition, int] = defaultdict(int)
    for quota in lanes:
        behind[quota.tp] = max(behind[quota.tp], quota.lag)
    for quota in sorted(lanes, key=lambda q: (-age_ms(q.tp, q.piece.position), behind[q.tp], -q.lag, q.lane)):
        left = max(left_ms, 0.0)
        if quota.work_ms <= left:
            granted[quota.lane] = quota
        elif waits and not left:
            granted[quota.lane] = quota.up_to(0, Why.TURN)
        else:
            granted[quota.lane] = quota.within(left / quota.record_ms, Why.TURN)
        left_ms = left - quota.work_ms
    return granted


def _level(lanes: Sequence[Quota], granted: Mapping[LaneId, Quota]) -> dict[LaneId, Quota]:
    """A partition's quota, shared among its lanes: small works pack well, and lie in few offsets, fetched once."""
    work_ms: defaultdict[TopicPartition, float] = defaultdict(float)
    for quota in granted.values():
        work_ms[quota.tp] += quota.work_ms
    level = {tp: _level_lag(tuple(of_tp), work_ms[tp]) for tp, of_tp in groupby(lanes, key=attrgetter("tp"))}
    return {
        q.lane: q.within((q.lag - level[q.tp] + 1e-6) * q.cell.density, Why.TURN) if q.work_ms else q for q in lanes
    }


def _level_lag(lanes: Iterable[Quota], work_ms: float) -> float:
    """The lag down to which all lanes are read so that the work is `work_ms`, each within its own quota."""
    costs = [(q.lag, q.lag - q.span, q.work_ms / q.span) for q in lanes if q.work_ms]
    turns = sorted([x for lag, least, ms in costs for x in ((lag, ms), (least, -ms))], reverse=True)
    level, offset_ms = float(turns[0][0]) if turns else 0.0, 0.0
    for at, change in turns:
        if offset_ms * (level - at) > work_ms:
            break
        work_ms -= offset_ms * (level - at)
        level, offset_ms = at, offset_ms + change
    return level - work_ms / offset_ms if offset_ms > 0 else level
