"""Finds the slow lanes of a batch when only its whole time is known: suspects are placed in different batches.

`read` cannot measure the work behind it. The member knows only the time of each batch, and its lanes. So a
group of suspects is read while the others wait for a batch:

    batch k    a b c d e f g h   too long: all are suspects
    batch k+1  a b c d           quick: cleared
    batch k+2  a b c d e f       slow: e or f (if it were quick: g or h, without another trial)
    batch k+3  a b c d e     g h quick: cleared
    batch k+4  a b c d e f   g h slow, so the cost of f is known

Each suspect has a claim: the milliseconds for each of its offsets if it alone is the reason. A batch that took much
less than the claims of its suspects clears them. The rest of a batch are cleared lanes: enough to keep the slots busy,
few enough that a slow suspect shows. This is binary splitting of group testing; it also finds several slow lanes. A
lane that is found is cut into halves, which are suspects again, until it has few hashes.

Where slow records are rare and very slow, a batch with few offsets of a suspect is long already, and a quick one proves
little. So a group reads twice as much after each quick batch, until it has read about as much as the long batch; each
search that ends without a find makes the next one ask for twice that. Pure values.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NamedTuple

from coordinator.plan.cost.batch_cost import BatchCost, Load, touch, touches
from coordinator.progress.slices import LaneId

ASIDE = 0.55
"""The part of the budget for every slot during a trial, if no lane is slow ..."""

TRIAL = 0.95
"""... and the part that a slow suspect's slot takes. A trial looks for that."""

CONTRAST = 0.4
"""This part of a claim's added time must show: a claim is an upper bound."""

UNSURE = 0.85
"""Before the first quick batch, a batch that takes this part of the healthy time is slow: that time is a guess."""

PROOF = 0.75
"""A suspect that is quick in this part of the offsets of the long batch is cleared, if slow records are frequent."""

GROWTH = 2
"""Growth of what suspects read after a quick batch, and of what lanes read that were away."""

ALL_SLOW = 4
"""With this many slow groups and no quick group, all lanes are alike."""


class CostClaim(NamedTuple):
    """A possible reason of a long batch: each offset of a suspect's task took this many milliseconds ...

    ... of which `beside` records of others are not its own.
    """

    ms: float
    beside: float
    span: int  # the offsets that it has read in this time

    @classmethod
    def of(cls, batch: BatchCost, load: Load, part: float = 1.0) -> "CostClaim":
        """The claim of a part of a lane's hashes after a long batch."""
        beside = batch.rows_beside(load) + (1 - part) * load.rows
        return cls(batch.work_ms / load.span, beside / load.span, load.span)

    def added_ms(self, density: float, rate_ms: float) -> float:
        """The time that an offset takes beyond that of `density` healthy records."""
        return max(0.0, self.ms - rate_ms * (density + self.beside))


@dataclass(frozen=True, slots=True)
class Suspects:
    """Suspects that are tried in one batch. If it is quick and `else_next`, the group behind it must be slow."""

    lanes: tuple[LaneId, ...]
    else_next: bool = False
    pace: float = 1.0  # times the offsets in which a slow suspect shows on average; doubled after each quick batch
    quick: float = 0.0  # batches with as many offsets as the long one in which it was quick

    @property
    def halves(self) -> tuple["Suspects", ...]:
        """Two halves of the group. If the first is not slow, the second is."""
        middle = len(self.lanes) // 2
        first, second = self.lanes[:middle], self.lanes[middle:]
        return Suspects(first, else_next=True, pace=self.pace), Suspects(second, pace=self.pace)


@dataclass(frozen=True, slots=True)
class Search:
    """Groups to try, the next one first, and the claims of their lanes."""

    groups: tuple[Suspects, ...] = ()
    claims: Mapping[LaneId, CostClaim] = field(default_factory=dict)
    patience: float = PROOF  # the `quick` of a group that clears it
    slow_groups: int = 0
    known: bool = False  # the cost of a healthy record
    some_quick: bool = False
    found: bool = False  # a slow lane

    @classmethod
    def among(cls, claims: Mapping[LaneId, CostClaim], patience: float, *, known: bool) -> "Search":
        """A new search among lanes that were slow together; none among fewer than two.

        `known` where the cost of a healthy record is known.
        """
        if len(claims) < 2:
            return cls()
        return cls(Suspects(tuple(sorted(claims))).halves, claims, patience, known=known)

    @property
    def trial(self) -> tuple[LaneId, ...]:
        """The suspects in the next batch."""
        return self.groups[0].lanes if self.groups else ()

    @property
    def held(self) -> tuple[LaneId, ...]:
        """The suspects that wait."""
        return tuple(lane for group in self.groups[1:] for lane in group.lanes)

    def added_ms(self, lane: LaneId, density: float, rate_ms: float) -> float | None:
        """The time that an offset of a suspect on trial adds, if its claim is right; None for another lane."""
        suspect = next((tried for tried in self.trial if touch(tried, lane)), None)
        return self.claims[suspect].added_ms(density, rate_ms) if suspect else None

    def claimed_ms(self, batch: BatchCost, rate_ms: float) -> float:
        """The time that the slowest suspect of the batch adds, if its claim is right."""
        loads = batch.of(self.trial)
        return max(
            (load.span * (self.added_ms(load.lane, load.rows / load.span, rate_ms) or 0.0) for load in loads),
            default=0.0,
        )

    def proof(self, batch: BatchCost) -> float:
        """How much of the long batch's offsets each suspect on trial has read in this one, at least."""
        loads = batch.of(self.trial)
        return min(
            (load.span / c.span for load in loads for lane, c in self.claims.items() if touch(load.lane, lane)),
            default=0.0,
        )

    def only(self, busy: Collection[LaneId]) -> "Search":
        """The search without suspects that have nothing to read or were released: no lane waits for them.

        Without suspects to try, no lane waits either.
        """
        parts = (replace(g, lanes=tuple(lane for lane in g.lanes if touches(lane, busy))) for g in self.groups)
        groups = tuple(g for g in parts if g.lanes)
        return replace(self, groups=groups) if groups else Search()

    def also(self, claims: Mapping[LaneId, CostClaim]) -> "Search":
        """The search with more suspects."""
        if not claims:
            return self
        return replace(self, groups=(*self.groups, Suspects(tuple(sorted(claims)))), claims={**self.claims, **claims})

    def halving(self, lane: LaneId, claim: CostClaim) -> "Search":
        """The search with the halves of a lane that was found slow as suspects."""
        tp, hashes = lane
        halves = tuple((tp, h) for h in hashes.cut((hashes.lo + hashes.size // 2,)))
        groups = (*self.groups, *Suspects(halves).halves)
        claims = {**self.claims, **dict.fromkeys(halves, claim)}
        return replace(self, groups=groups, claims=claims, some_quick=True, found=True)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a batch: the search that goes on, a lane found slow, lanes cleared; whether all are alike."""

    search: Search
    slow: LaneId | None = None
    quick: tuple[LaneId, ...] = ()
    even: bool = False
    long: bool = False  # the batch took longer than its healthy lanes explain


def tried(search: Search, batch: BatchCost, rate_ms: float, healthy_ms: float, noise_ms: float) -> Finding:
    """The search after a batch with its trial group, which takes `healthy_ms` if none of the group is slow.

    A difference of `noise_ms` is chance.
    """
    group, rest = search.groups[0], search.groups[1:]
    loads = batch.of(group.lanes)
    if not loads:
        return Finding(replace(search, groups=(*rest, group)))
    least_ms = healthy_ms + CONTRAST * search.claimed_ms(batch, rate_ms) + noise_ms
    long = batch.work_ms >= (least_ms if search.known or search.some_quick else UNSURE * healthy_ms)
    shown = sum(load.rows for load in loads) >= 1  # without records, none of them can be the reason
    if long and shown:
        seen = {lane: _claim(search, batch, lane) for lane in group.lanes}
        finding = _slow(replace(search, claims={**search.claims, **seen}), group, rest)
    else:
        group = replace(group, quick=group.quick + search.proof(batch), pace=GROWTH * group.pace)
        finding = _quick(replace(search, some_quick=search.some_quick or shown), group, rest)
    return replace(finding, long=long)


def _claim(search: Search, batch: BatchCost, lane: LaneId) -> CostClaim:
    """The lower of a suspect's claims, because each is an upper bound."""
    load = max(batch.of((lane,)), key=attrgetter("span"), default=None)
    if load is None:
        return search.claims[lane]
    return min(search.claims[lane], CostClaim.of(batch, load))


def _quick(search: Search, group: Suspects, rest: tuple[Suspects, ...]) -> Finding:
    if group.quick < search.patience:
        return Finding(replace(search, groups=(group, *rest)))
    if group.else_next and rest and len(rest[0].lanes) > 1:
        return replace(_slow(search, rest[0], rest[1:]), quick=group.lanes)
    return Finding(replace(search, groups=rest), quick=group.lanes)


def _slow(search: Search, group: Suspects, rest: Iterable[Suspects]) -> Finding:
    count = search.slow_groups + 1
    if count >= ALL_SLOW and not search.some_quick:
        return Finding(Search(), even=True)
    search = replace(search, slow_groups=count)
    if len(group.lanes) == 1:
        return Finding(replace(search, groups=tuple(rest)), slow=group.lanes[0])
    return Finding(replace(search, groups=(*rest, *group.halves)))
