"""Finds a key whose records are few and take longer than the time budget each, where only the clock tells.

`search` clears who was in a quick batch. That proves nothing of a key whose records are few: mostly a batch has none
of them. What tells is a stall, a batch that took a multiple of its budget and of what its records should. Who is to
blame was in it, so its lanes are suspects, in groups of which each batch reads one, and sometimes none:

    stall      a b c d e f g h    all are suspects; they read as much less as this took too long, then
    batch 1    a b c d            twice as much each time
    batch 2            e f g h
    batch 3    none of them       (only where there are other lanes)
    batch 4    a b c d            a stall: they are two groups from now on, which read less again
    batch 5            e f g h    twice as much again, until they have read enough to be cleared
    batch 6    none of them
    batch 7    a b

A group of one lane that stalls is cut in the middle of its hashes. So the key is soon alone with few others, in a lane
that reads what mostly fits in the budget, every few batches. If it recovers, its group is cleared like any other. Pure.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from coordinator.cost.batch_cost import BatchCost, LaneId
from coordinator.cost.lane_cuts import finely
from coordinator.cost.overhead import Point
from coordinator.cost.quotas import Quota, Why
from coordinator.plan.planning import OwnedRange
from coordinator.ranges import HASH_MAX, HashRange
from coordinator.subscription import TopicPartition

STALL = 2.5
"""A batch that takes so many times its budget, and what its records should, has stalled ..."""

LONG_STALL = 5.0
"""... and surely, if it is so many times: if many records were slow, batches before it would have been longer too."""

GROWTH = 2.0
"""A group reads so many times more after a batch in which it did not stall."""

CLEARED = 3.0
"""So many times the offsets in which it stalled, on average, a group reads without a stall, and is cleared."""

UNBOUND = 6
"""Or it might have read more in so many turns, and did not stall: cleared it reads no more at once than it does now."""

IDLE = 20
"""A group that has had nothing to read in so many batches is forgotten: a search does not wait for who went silent."""


def stalled(batch: BatchCost, budget_ms: float, expected_ms: float, seen: Collection[Point]) -> bool:
    """Whether a batch took long by few of its records.

    If by many, one that was `seen` before took about as long for its records: `search` finds who that is in less time.
    """
    each_ms = batch.work_ms / batch.fullest
    many = any(rows * each_ms > budget_ms / 4 and took > rows * each_ms / 2 for rows, took in seen)
    times = LONG_STALL if many else STALL
    return batch.work_ms > max(times * budget_ms, STALL * expected_ms)


@dataclass(frozen=True, slots=True)
class Suspects:
    """Suspects that read in the same batches, each so many offsets."""

    lanes: tuple[LaneId, ...]
    span: float
    read: float  # offsets that each read until the last stall
    stalls: int = 1
    quiet: float = 0.0  # offsets that each read since then
    unbound: int = 0  # turns since then in which it might have read more
    idle: int = 0  # batches in a row in which there was nothing to read for it

    def of(self, owned: "Lanes", waiting: "Lanes") -> "Suspects":
        """The same without lanes that are not owned; it is not idle if one of them is waiting."""
        lanes = tuple(x for x in self.lanes if among(x, owned))
        return replace(self, lanes=lanes, idle=0 if any(among(x, waiting) for x in lanes) else self.idle)

    def stalled(self, offsets: float, times: float, *, fixed: bool) -> tuple["Suspects", ...]:
        """What becomes of it when it has read so many offsets, and the batch took so many times the budget."""
        read = self.read + self.quiet + offsets
        return tuple(Suspects(x, _less(offsets, times), read, self.stalls + 1) for x in halves(self.lanes, fixed=fixed))

    def passed(self, offsets: float, *, bound: bool) -> tuple["Suspects", ...]:
        """What becomes of it when it has read so many offsets without a stall, as many as it may if `bound`.

        Nothing if that proves that others are to blame, or it reads all it would anyway; but who waits to read more
        than it may goes on to double.
        """
        quiet, unbound = self.quiet + offsets, self.unbound + (not bound)
        if not bound and (quiet >= CLEARED * self.read / self.stalls or unbound >= UNBOUND):
            return ()
        return (replace(self, span=max(self.span, GROWTH * offsets), quiet=quiet, unbound=unbound),)


def halves(lanes: tuple[LaneId, ...], *, fixed: bool = False) -> tuple[tuple[LaneId, ...], ...]:
    """Suspects in two parts; a lane that is alone is cut, unless lanes are fixed or it is one hash."""
    parts = lanes if len(lanes) > 1 or fixed else finely(lanes[0], 2)
    middle = len(parts) // 2
    return (parts[:middle], parts[middle:]) if middle else (parts,)


@dataclass(frozen=True)  # without slots, for suspects may be very many, and each lane is asked for
class Stalls:
    """The groups in turn, of which the first reads in the next batch; None is the turn of nobody."""

    groups: tuple[Suspects | None, ...] = ()
    fixed: bool = False  # no lane is cut

    @property
    def turn(self) -> Suspects | None:
        """The suspects that read in the next batch."""
        return self.groups[0] if self.groups else None

    @property
    def settled(self) -> bool:
        """Whether all that is left to find is which key of a lane it is."""
        return all(len(group.lanes) == 1 for group in self.groups if group)

    @cached_property
    def _suspects(self) -> "Lanes":
        return by_partition(lane for group in self.groups if group for lane in group.lanes)

    @cached_property
    def _on_trial(self) -> "Lanes":
        return by_partition(self.turn.lanes if self.turn else ())

    def bounds(self, tp: TopicPartition) -> frozenset[int]:
        """Where lanes of a partition begin and end so that each suspect is a lane."""
        ends = (bound for hashes in self._suspects.get(tp, ()) for bound in (hashes.lo, hashes.hi + 1))
        return frozenset(bound for bound in ends if 0 < bound <= HASH_MAX)

    # -- before a batch ------------------------------------------------------------------------

    def ready(self, waiting: Collection[LaneId], owned: Iterable[LaneId], *, nobody: bool) -> "Stalls":
        """The same without lanes that went to others or silent, from the first turn on in which somebody may read.

        With `nobody` it is nobody's turn, as long as others have something to read.
        """
        mine, ready = by_partition(owned), by_partition(waiting)
        kept = (g and g.of(mine, ready) for g in self.groups)
        groups = tuple(g for g in kept if g is None or (g.lanes and g.idle < IDLE))
        if not any(groups):
            return replace(self, groups=())
        others = any(not among(x, self._suspects) for x in waiting)
        turns = [i for i, g in enumerate(groups) if (any(among(x, ready) for x in g.lanes) if g else others)]
        first = next((i for i in turns if nobody and groups[i] is None), turns[0] if turns else 0)
        return self._in_turn(groups[first:] + groups[:first])

    def _in_turn(self, groups: tuple[Suspects | None, ...]) -> "Stalls":
        return self if groups == self.groups else replace(self, groups=groups)

    def limited(
        self, lanes: Iterable[tuple[TopicPartition, OwnedRange]]
    ) -> Iterator[tuple[TopicPartition, OwnedRange]]:
        """The pieces, up to where suspects may read them in the next batch."""
        for tp, piece in lanes:
            span = self._span((tp, piece.hashes))
            yield tp, piece if span is None else piece._replace(ceiling=piece.reach(piece.position + span))

    def _span(self, lane: LaneId) -> int | None:
        """How far a lane may read; None if it is no suspect."""
        if self.turn and among(lane, self._on_trial):
            return int(self.turn.span)
        return 0 if among(lane, self._suspects) else None

    def named(self, quotas: Iterable[Quota]) -> Iterator[Quota]:
        """The quotas, with why suspects may read no more."""
        for quota in quotas:
            span = self._span(quota.lane) if quota.why is Why.CEILING else None
            yield quota if span is None else quota._replace(why=Why.TRIAL if span else Why.SUSPECT)

    # -- after a batch -------------------------------------------------------------------------

    def passed_over(self) -> "Stalls":
        """After a batch that tells nothing, or was nobody's turn."""
        return self._ended(self.groups[1:] + self.groups[:1])

    def suspecting(self, lanes: Sequence[LaneId], offsets: float, times: float) -> "Stalls":
        """With more suspects; each has read so many offsets of a batch that took so many times the budget."""
        new = (Suspects(half, _less(offsets, times), offsets) for half in halves(tuple(lanes), fixed=self.fixed))
        return replace(self, groups=(*new, *(self.groups or (None,))))

    def after(self, batch: BatchCost, times: float | None = None) -> "Stalls":
        """After a batch with the first group in it; if that stalled, it took so many times the budget."""
        group, rest = self.turn, self.groups[1:]
        if group is None:
            return self.passed_over()
        offsets = offsets_of(batch, group.lanes)
        if not offsets:  # others were before them, or Spark's limits: whatever the batch was, it was not they
            return self.passed_over()
        if times is None:
            bound = any(x.span >= int(group.span) for x in batch.lanes if among(x.lane, self._on_trial))
            after = group.passed(offsets, bound=bound)
        else:
            after = group.stalled(offsets, times, fixed=self.fixed)
        return self._ended((*rest, *after))

    def _ended(self, groups: Iterable[Suspects | None]) -> "Stalls":
        """One batch later; whether there is something to read for a group is looked at before the next."""
        later = tuple(g and replace(g, idle=g.idle + 1) for g in groups)
        return replace(self, groups=later if any(later) else ())


def offsets_of(batch: BatchCost, lanes: Iterable[LaneId]) -> float:
    """How many offsets each of these lanes has read, on average."""
    wanted = by_partition(lanes)
    spans = [x.span for x in batch.lanes if among(x.lane, wanted)]
    return sum(spans) / len(spans) if spans else 0.0


Lanes = Mapping[TopicPartition, Sequence[HashRange]]


def by_partition(lanes: Iterable[LaneId]) -> Lanes:
    """Lanes as ranges of each partition."""
    found: defaultdict[TopicPartition, list[HashRange]] = defaultdict(list)
    for tp, hashes in lanes:
        found[tp].append(hashes)
    return found


def among(lane: LaneId, lanes: Lanes) -> bool:
    """Whether a lane has hashes in common with any of these."""
    tp, hashes = lane
    return any(x.intersection(hashes) is not None for x in lanes.get(tp, ()))


def _less(offsets: float, times: float) -> float:
    return max(1.0, offsets / max(1.0, times))
