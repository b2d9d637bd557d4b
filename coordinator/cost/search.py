"""Finds the slow lanes of a batch when only its whole time is known: suspects are placed in different batches.

`read` cannot measure the work behind it. The member knows only the time of each batch, and its lanes. So a
group of suspects is read while the others wait for a batch:

    batch k    a b c d e f g h   too long: all are suspects
    batch k+1  a b c d           quick: cleared
    batch k+2  a b c d e f       slow: e or f (if it were quick: g or h, without another trial)
    batch k+3  a b c d e     g h quick: cleared
    batch k+4  a b c d e f   g h slow, so the cost of f is known

Each suspect has a claim: the milliseconds for each of its offsets if it alone is the reason. A batch that took less
than the claims of its suspects clears them. The rest of a batch are cleared lanes: enough to keep the slots busy, few
enough that a slow suspect shows. This is binary splitting of group testing; it also finds several slow lanes. Pure
values.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from coordinator.cost.batch_cost import BatchCost, LaneId, Load, touch

ASIDE = 0.55
"""The part of the budget for every slot during a trial, if no lane is slow ..."""

TRIAL = 0.95
"""... and the part that a slow suspect's slot takes. A trial looks for that."""

CONTRAST = 0.4
"""This part of a claim's added time must show: a claim is an upper bound."""

SAME = 0.1
"""A claim that adds less than this part of a healthy batch cannot be distinguished from it, and does no harm."""

ASTRAY = 1.5
"""A batch that takes this many times its budget and its suspects' claims has another reason."""

UNSURE = 0.85
"""Before the first quick batch, a batch that takes this part of the healthy time is slow: that time is a guess."""

MOST_TRIALS = 14
"""Most batches of a search. Two slow lanes need fewer, so a longer search has no slow lane to find."""

FULL = 0.8
"""A batch that takes this part of the budget is about as long as allowed."""

NOISE = 3.0
"""A difference of this many times the noise is not chance."""

ALL_SLOW = 4
"""With this many slow groups and no quick group, all lanes are alike."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A possible reason of a long batch: each offset of the suspect took this many milliseconds, on its own slot ...

    ... together with `others`: healthy records that were read in the same time, for each of these offsets.
    """

    ms: float
    others: float = 0.0

    def added_ms(self, density: float, rate_ms: float) -> float:
        """The time that an offset takes beyond that of `density` healthy records."""
        return self.ms - rate_ms * (density + self.others)

    def record_ms(self, density: float, rate_ms: float) -> float:
        """The cost of a record if the claim is right: at least that of a healthy record."""
        return rate_ms + max(0.0, self.added_ms(density, rate_ms)) / density


@dataclass(frozen=True, slots=True)
class Suspects:
    """Suspects that are tried in one batch. If it is quick and `else_next`, the group behind it must be slow."""

    lanes: tuple[LaneId, ...]
    else_next: bool = False

    @property
    def halves(self) -> tuple["Suspects", ...]:
        """Two halves of the group. If the first is not slow, the second is."""
        middle = len(self.lanes) // 2
        return Suspects(self.lanes[:middle], else_next=True), Suspects(self.lanes[middle:])


@dataclass(frozen=True, slots=True)
class Search:
    """Groups to try, the next one first, and the claims of their lanes."""

    groups: tuple[Suspects, ...] = ()
    claims: Mapping[LaneId, Claim] = field(default_factory=dict)
    slow_groups: int = 0
    trials: int = 0  # batches so far
    some_quick: bool = False
    doubted: tuple[LaneId, ...] = ()  # quick, but known as slow: they wait until another lane is proven slow

    @classmethod
    def among(cls, claims: Mapping[LaneId, Claim], *, some_quick: bool = False) -> "Search":
        """A new search among lanes that were slow together; none among fewer than two.

        `some_quick` where the cost of a healthy record is known.
        """
        return cls(Suspects(tuple(sorted(claims))).halves, claims, some_quick=some_quick) if len(claims) > 1 else cls()

    @property
    def trial(self) -> tuple[LaneId, ...]:
        """The suspects in the next batch."""
        return self.groups[0].lanes if self.groups else ()

    def alone(self, slots: int) -> bool:
        """Whether each suspect of the next batch has a slot of its own."""
        return len(self.trial) <= slots // 2

    @property
    def held(self) -> tuple[LaneId, ...]:
        """The suspects that wait."""
        return (*self.doubted, *(lane for group in self.groups[1:] for lane in group.lanes))

    def astray(self, batch: BatchCost, budget_ms: float) -> bool:
        """Whether the batch took longer than its suspects can explain: then the slow lane is another one."""
        return batch.work_ms > ASTRAY * max(budget_ms, self.claimed_ms(batch))

    def claimed_ms(self, batch: BatchCost) -> float:
        """The time of the batch if the claim of its slowest suspect is right."""
        return max((batch.span_of(x) * self.claims[x].ms for x in self.trial), default=0.0)

    def only(self, busy: Collection[LaneId]) -> "Search":
        """The search without suspects that have nothing to read or were released: no lane waits for them.

        Without suspects to try, no lane waits either.
        """
        parts = (replace(g, lanes=tuple(x for x in g.lanes if _touches(x, busy))) for g in self.groups)
        groups = tuple(g for g in parts if g.lanes)
        return replace(self, groups=groups) if groups else Search()


def _touches(lane: LaneId, others: Collection[LaneId]) -> bool:
    return any(touch(x, lane) for x in others)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a batch: the search that goes on, lanes proven slow or cleared, and whether all are alike."""

    search: Search
    slow: tuple[LaneId, ...] = ()
    quick: tuple[LaneId, ...] = ()
    even: bool = False


def suspects(
    batch: BatchCost, budget_ms: float, noise_ms: float, *, known_ms: float, expected_ms: float, peace: bool
) -> dict[LaneId, Claim]:
    """The claims of lanes that may explain a long batch; none if lanes known as slow, `known_ms`, explain it.

    A batch within its budget makes suspects only if other batches have shown that its records should take
    `expected_ms`. In times of `peace`, only such batches make suspects.
    """
    over = batch.work_ms - noise_ms > FULL * budget_ms and not peace
    dear = batch.work_ms > max(budget_ms / 2, 1.5 * expected_ms + NOISE * noise_ms)
    drowned = (TRIAL - ASIDE) * budget_ms < NOISE * noise_ms and batch.work_ms < 1.5 * budget_ms
    if batch.work_ms <= 1.3 * known_ms or drowned or not (over or dear):
        return {}
    return {x.lane: Claim(batch.work_ms / x.span, batch.rows_beside(x) / x.span) for x in batch.lanes if x.rows >= 1}


def tried(search: Search, batch: BatchCost, rate_ms: float, healthy_ms: float, noise_ms: float = 0.0) -> Finding:
    """The search after a batch with its trial group, which takes `healthy_ms` if none of the group is slow.

    A healthy record takes `rate_ms`; a difference of `noise_ms` is chance. The search ends if the batch proves nothing,
    or if the search has lasted too long, so that no lane waits without end.
    """
    loads = [x for x in batch.lanes if x.span and _touches(x.lane, search.trial)]
    if not loads or not batch.clock_valid:
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
    """The lower of a suspect's claims, because each is an upper bound; after a trial alone, the measured cost."""
    now, density = Claim(batch.work_ms / load.span, batch.rows_beside(load) / load.span), load.rows / load.span
    if len(search.trial) == 1:
        return now
    return min(search.claims.get(load.lane, now), now, key=lambda c: c.added_ms(density, rate_ms))


def _least(search: Search, batch: BatchCost, rate_ms: float, healthy_ms: float) -> float:
    """The least time of the batch if one of its suspects is slow."""
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
