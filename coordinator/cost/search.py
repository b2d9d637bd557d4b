"""Finds the slow lanes of a batch whose time is known only as a whole: suspects are placed in different batches.

What runs after `read` cannot be timed from inside it. All that is known is how long a batch took, and
which lanes were in it. So a group of suspects works while the others wait for a batch:

    batch k    a b c d e f g h   too long: all are suspects
    batch k+1  a b c d           quick: cleared
    batch k+2  a b c d e f       slow: e or f (had it been quick: g or h, without asking)
    batch k+3  a b c d e     g h quick: cleared
    batch k+4  a b c d e f   g h slow, and its cost is known now

Each suspect has a claim: the milliseconds an offset of it takes if it alone is why. A batch that
took less than the claims of its suspects clears them. The rest of a batch is lanes that are cleared, enough
to keep the slots busy, little enough that a slow suspect shows. Binary splitting of group testing: it finds
several slow lanes as well. Pure values.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from coordinator.cost.batch_cost import BatchCost, LaneId, Load, touch

ASIDE = 0.55
"""The part of the budget that every slot is given during a trial, if nobody is slow ..."""

TRIAL = 0.95
"""... and the part that the slot of a slow suspect takes, which is what a trial looks for."""

CONTRAST = 0.4
"""So much of what a claim adds must be seen: a claim is an upper bound."""

SAME = 0.1
"""A claim that adds no more than this part of a healthy batch cannot be told from it, and does no harm."""

ASTRAY = 1.5
"""A batch that takes so many times more than its budget and its suspects' claims has another reason."""

UNSURE = 0.85
"""While no batch was quick, one that took so much of what is called healthy is slow: nobody knows what is healthy."""

MOST_TRIALS = 14
"""A search that goes on for longer looks for what is not there: two slow lanes are found in fewer batches."""

FULL = 0.8
"""A batch that takes so much of the budget is about as long as one may be."""

NOISE = 3.0
"""So many times the noise is no chance."""

ALL_SLOW = 4
"""So many groups slow and none quick: all lanes are alike, none is slower than the rest."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Why a batch may have taken long: for each offset of the suspect so many milliseconds, all by itself ...

    ... but for `others`, the records for each of these offsets that were read in the same time, if they are healthy.
    """

    ms: float
    others: float = 0.0

    def added_ms(self, density: float, rate_ms: float) -> float:
        """What an offset takes more than if its `density` records were healthy."""
        return self.ms - rate_ms * (density + self.others)

    def record_ms(self, density: float, rate_ms: float) -> float:
        """What a record costs if the claim is right: no less than a healthy one."""
        return rate_ms + max(0.0, self.added_ms(density, rate_ms)) / density


@dataclass(frozen=True, slots=True)
class Suspects:
    """Suspects that are tried in one batch. If it is quick and `else_next`, the group behind it must be slow."""

    lanes: tuple[LaneId, ...]
    else_next: bool = False

    @property
    def halves(self) -> tuple["Suspects", ...]:
        """The group as two, the second of which is slow if the first is not."""
        middle = len(self.lanes) // 2
        return Suspects(self.lanes[:middle], else_next=True), Suspects(self.lanes[middle:])


@dataclass(frozen=True, slots=True)
class Search:
    """Groups yet to be tried, the next one first, and the claims of their lanes."""

    groups: tuple[Suspects, ...] = ()
    claims: Mapping[LaneId, Claim] = field(default_factory=dict)
    slow_groups: int = 0
    trials: int = 0  # batches so far
    some_quick: bool = False
    doubted: tuple[LaneId, ...] = ()  # quick, but known as slow: they wait until another is proven to be it

    @classmethod
    def among(cls, claims: Mapping[LaneId, Claim], *, some_quick: bool = False) -> "Search":
        """A new search among lanes that were slow together; none among fewer than two.

        `some_quick` where it is known what a healthy record takes.
        """
        return cls(Suspects(tuple(sorted(claims))).halves, claims, some_quick=some_quick) if len(claims) > 1 else cls()

    @property
    def trial(self) -> tuple[LaneId, ...]:
        """The suspects that work in the next batch."""
        return self.groups[0].lanes if self.groups else ()

    def alone(self, slots: int) -> bool:
        """Whether each suspect of the next batch has a slot for itself."""
        return len(self.trial) <= slots // 2

    @property
    def held(self) -> tuple[LaneId, ...]:
        """The suspects that wait."""
        return (*self.doubted, *(lane for group in self.groups[1:] for lane in group.lanes))

    def astray(self, batch: BatchCost, budget_ms: float) -> bool:
        """Whether the batch took longer than its suspects can have: who is slow is not among them."""
        return batch.work_ms > ASTRAY * max(budget_ms, self.claimed_ms(batch))

    def claimed_ms(self, batch: BatchCost) -> float:
        """What the batch takes if the slowest of its suspects is as slow as is claimed."""
        return max((batch.span_of(x) * self.claims[x].ms for x in self.trial), default=0.0)

    def only(self, busy: Collection[LaneId]) -> "Search":
        """The search without suspects that have nothing to read or are not owned any more: nobody waits for them.

        Where none is left to be tried, nobody is held either.
        """
        parts = (replace(g, lanes=tuple(x for x in g.lanes if _touches(x, busy))) for g in self.groups)
        groups = tuple(g for g in parts if g.lanes)
        return replace(self, groups=groups) if groups else Search()


def _touches(lane: LaneId, others: Collection[LaneId]) -> bool:
    return any(touch(x, lane) for x in others)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a batch tells: the search that goes on, lanes found slow or cleared, and whether all are alike."""

    search: Search
    slow: tuple[LaneId, ...] = ()
    quick: tuple[LaneId, ...] = ()
    even: bool = False


def suspects(
    batch: BatchCost, budget_ms: float, noise_ms: float, *, known_ms: float, expected_ms: float, peace: bool
) -> dict[LaneId, Claim]:
    """The claims of lanes that may be why a batch took long; none where lanes known as slow, `known_ms`, explain it.

    A batch within its budget makes suspects only where others have shown that records need not cost so much, but take
    `expected_ms`; in times of `peace` only that does.
    """
    over = batch.work_ms - noise_ms > FULL * budget_ms and not peace
    dear = batch.work_ms > max(budget_ms / 2, 1.5 * expected_ms + NOISE * noise_ms)
    drowned = (TRIAL - ASIDE) * budget_ms < NOISE * noise_ms and batch.work_ms < 1.5 * budget_ms
    if batch.work_ms <= 1.3 * known_ms or drowned or not (over or dear):
        return {}
    return {x.lane: Claim(batch.work_ms / x.span, batch.rows_beside(x) / x.span) for x in batch.lanes if x.rows >= 1}


def tried(search: Search, batch: BatchCost, rate_ms: float, healthy_ms: float, noise_ms: float = 0.0) -> Finding:
    """The search after a batch with its trial group in it, which takes `healthy_ms` if nobody in it is slow.

    A healthy record takes `rate_ms`; `noise_ms` more or less is chance. The search ends where the batch tells nothing,
    and where it has gone on for long: nobody shall wait in vain.
    """
    loads = [x for x in batch.lanes if x.span and _touches(x.lane, search.trial)]
    if not loads or not batch.clock_tells:
        return Finding(Search())
    if search.trials >= MOST_TRIALS:
        return Finding(Search(), even=True)
    search = replace(search, trials=search.trials + 1)
    group, rest = search.groups[0], search.groups[1:]
    least_ms = _least(search, batch, rate_ms, healthy_ms) + noise_ms if search.some_quick else UNSURE * healthy_ms
    if batch.work_ms >= least_ms:
        seen = {x.lane: _claim(search, batch, x, rate_ms) for x in loads}
        return _slow(replace(search, claims={**search.claims, **seen}), group, rest)
    if group.else_next and rest and len(rest[0].lanes) > 1:
        finding = _slow(replace(search, some_quick=True), rest[0], rest[1:])
        return replace(finding, quick=group.lanes)
    return Finding(replace(search, groups=rest, some_quick=True), quick=group.lanes)


def _claim(search: Search, batch: BatchCost, load: Load, rate_ms: float) -> Claim:
    """The lower of a suspect's claims, for each is an upper bound; once it is tried alone, what was seen of it."""
    now, density = Claim(batch.work_ms / load.span, batch.rows_beside(load) / load.span), load.rows / load.span
    if len(search.trial) == 1:
        return now
    return min(search.claims.get(load.lane, now), now, key=lambda c: c.added_ms(density, rate_ms))


def _least(search: Search, batch: BatchCost, rate_ms: float, healthy_ms: float) -> float:
    """The least that the batch takes if one of its suspects is slow."""
    added = [
        x.span * search.claims[x.lane].added_ms(x.rows / x.span, rate_ms) + rate_ms * (x.rows + batch.rows_beside(x))
        for x in batch.lanes
        if x.span and x.lane in search.trial
    ]
    visible = [ms - healthy_ms for ms in added if ms > (1 + SAME) * healthy_ms]
    return healthy_ms + CONTRAST * min(visible) if visible else inf


def _slow(search: Search, group: Suspects, rest: Iterable[Suspects]) -> Finding:
    count = search.slow_groups + 1
    if count >= ALL_SLOW and not search.some_quick:
        return Finding(Search(), even=True)
    if len(group.lanes) == 1:
        return Finding(replace(search, groups=tuple(rest), slow_groups=count), slow=group.lanes)
    return Finding(replace(search, groups=(*rest, *group.halves), slow_groups=count))
