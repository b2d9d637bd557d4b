"""Finds a key with few records that each exceed the time budget, when only the time of whole batches is known.

`search` clears the lanes of a quick batch. That proves nothing for a key with few records: most batches have none of
them. The sign is a stall, a batch that took a multiple of its budget and of its expected time. Its lanes are suspects,
in groups. Each batch reads one group, and some batches none:

    stall      a b c d e f g h    too long by some factor: all are suspects, read less by that factor, then
    batch 1    a b c d            twice as much each time
    batch 2            e f g h
    batch 3    none of them       (only where there are other lanes)
    batch 4    a b c d            a stall: from now on two groups, which read less again
    batch 5            e f g h    twice as much again, until they have read enough to be cleared
    batch 6    none of them
    batch 7    a b

If a group of one lane stalls, its lane is cut in the middle of its hashes. So the key is soon in a lane with few other
keys, which is read every few batches and mostly fits the budget. If the key recovers, its group is cleared like any
other. Pure.
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
"""A batch that takes this many times its budget and its expected time has stalled ..."""

LONG_STALL = 5.0
"""... and certainly at this factor: if many records were slow, earlier batches would have been longer too."""

GROWTH = 2.0
"""Growth of a group's offsets after a batch without a stall."""

CLEARED = 3.0
"""A group is cleared after this many times the offsets of its stall, on average, without another stall."""

UNBOUND = 6
"""A group is also cleared after this many turns in which its limit did not bind: then it reads no more than now."""

IDLE = 20
"""A group without anything to read in this many batches is dropped: the search does not wait for it."""


def stalled(batch: BatchCost, budget_ms: float, expected_ms: float, seen: Collection[Point]) -> bool:
    """Whether few records of a batch took most of its time.

    If many records were slow, an earlier batch in `seen` took about as long for its records: then `search` is faster.
    """
    each_ms = batch.work_ms / batch.fullest
    many = any(rows * each_ms > budget_ms / 4 and took > rows * each_ms / 2 for rows, took in seen)
    times = LONG_STALL if many else STALL
    return batch.work_ms > max(times * budget_ms, STALL * expected_ms)


@dataclass(frozen=True, slots=True)
class Suspects:
    """Suspects that are read in the same batches, each up to a number of offsets."""

    lanes: tuple[LaneId, ...]
    span: float
    read: float  # offsets that each read until the last stall
    stalls: int = 1
    quiet: float = 0.0  # offsets that each read since then
    unbound: int = 0  # turns since then in which the limit did not bind
    idle: int = 0  # batches in a row without anything to read

    def of(self, owned: "Lanes", waiting: "Lanes") -> "Suspects":
        """The same without released lanes; not idle if one of its lanes has records to read."""
        lanes = tuple(x for x in self.lanes if among(x, owned))
        return replace(self, lanes=lanes, idle=0 if any(among(x, waiting) for x in lanes) else self.idle)

    def stalled(self, offsets: float, times: float, *, fixed: bool) -> tuple["Suspects", ...]:
        """The groups after a stall in which this group read `offsets`; the batch took `times` the budget."""
        read = self.read + self.quiet + offsets
        return tuple(Suspects(x, _less(offsets, times), read, self.stalls + 1) for x in halves(self.lanes, fixed=fixed))

    def passed(self, offsets: float, *, bound: bool) -> tuple["Suspects", ...]:
        """The groups after this group read `offsets` without a stall; `bound` if its limit was reached.

        Empty if that clears the group, or if it reads all there is without a limit. A group that could read more than
        its limit goes on to double.
        """
        quiet, unbound = self.quiet + offsets, self.unbound + (not bound)
        if not bound and (quiet >= CLEARED * self.read / self.stalls or unbound >= UNBOUND):
            return ()
        return (replace(self, span=max(self.span, GROWTH * offsets), quiet=quiet, unbound=unbound),)


def halves(lanes: tuple[LaneId, ...], *, fixed: bool = False) -> tuple[tuple[LaneId, ...], ...]:
    """Suspects in two parts. A single lane is cut, unless lanes are fixed or it has one hash."""
    parts = lanes if len(lanes) > 1 or fixed else finely(lanes[0], 2)
    middle = len(parts) // 2
    return (parts[:middle], parts[middle:]) if middle else (parts,)


@dataclass(frozen=True)  # without slots, for its cached properties: suspects may be very many
class Stalls:
    """The groups in turn. The first is read in the next batch; None is a turn without suspects."""

    groups: tuple[Suspects | None, ...] = ()
    fixed: bool = False  # no lane is cut

    @property
    def turn(self) -> Suspects | None:
        """The suspects in the next batch."""
        return self.groups[0] if self.groups else None

    @property
    def settled(self) -> bool:
        """Whether only the slow key within a lane is still unknown."""
        return all(len(group.lanes) == 1 for group in self.groups if group)

    @cached_property
    def _suspects(self) -> "Lanes":
        return by_partition(lane for group in self.groups if group for lane in group.lanes)

    @cached_property
    def _on_trial(self) -> "Lanes":
        return by_partition(self.turn.lanes if self.turn else ())

    def bounds(self, tp: TopicPartition) -> frozenset[int]:
        """The bounds of a partition's lanes, so that each suspect is a lane."""
        ends = (bound for hashes in self._suspects.get(tp, ()) for bound in (hashes.lo, hashes.hi + 1))
        return frozenset(bound for bound in ends if 0 < bound <= HASH_MAX)

    # -- before a batch ------------------------------------------------------------------------

    def ready(self, waiting: Collection[LaneId], owned: Iterable[LaneId], *, empty_turn: bool) -> "Stalls":
        """The same without released or silent lanes, from the first turn on in which a group has records to read.

        With `empty_turn`, the turn without suspects may come, as long as other lanes have something to read.
        """
        mine, ready = by_partition(owned), by_partition(waiting)
        kept = (g and g.of(mine, ready) for g in self.groups)
        groups = tuple(g for g in kept if g is None or (g.lanes and g.idle < IDLE))
        if not any(groups):
            return replace(self, groups=())
        others = any(not among(x, self._suspects) for x in waiting)
        turns = [i for i, g in enumerate(groups) if (any(among(x, ready) for x in g.lanes) if g else others)]
        first = next((i for i in turns if empty_turn and groups[i] is None), turns[0] if turns else 0)
        return self._in_turn(groups[first:] + groups[:first])

    def _in_turn(self, groups: tuple[Suspects | None, ...]) -> "Stalls":
        return self if groups == self.groups else replace(self, groups=groups)

    def limited(
        self, lanes: Iterable[tuple[TopicPartition, OwnedRange]]
    ) -> Iterator[tuple[TopicPartition, OwnedRange]]:
        """The pieces, limited for suspects to their offsets in the next batch."""
        for tp, piece in lanes:
            span = self._span((tp, piece.hashes))
            yield tp, piece if span is None else piece._replace(ceiling=piece.reach(piece.position + span))

    def _span(self, lane: LaneId) -> int | None:
        """Most offsets of a lane in the next batch; None if it is not a suspect."""
        if self.turn and among(lane, self._on_trial):
            return int(self.turn.span)
        return 0 if among(lane, self._suspects) else None

    def named(self, quotas: Iterable[Quota]) -> Iterator[Quota]:
        """The quotas, with the reason for the limits of suspects."""
        for quota in quotas:
            span = self._span(quota.lane) if quota.why is Why.CEILING else None
            yield quota if span is None else quota._replace(why=Why.TRIAL if span else Why.SUSPECT)

    # -- after a batch -------------------------------------------------------------------------

    def passed_over(self) -> "Stalls":
        """After a batch that proves nothing, or without suspects."""
        return self._ended(self.groups[1:] + self.groups[:1])

    def suspecting(self, lanes: Sequence[LaneId], offsets: float, times: float) -> "Stalls":
        """With more suspects. Each read `offsets` in a batch that took `times` the budget."""
        new = (Suspects(half, _less(offsets, times), offsets) for half in halves(tuple(lanes), fixed=self.fixed))
        return replace(self, groups=(*new, *(self.groups or (None,))))

    def after(self, batch: BatchCost, times: float | None = None) -> "Stalls":
        """After a batch with the first group. If it stalled, it took `times` the budget."""
        group, rest = self.turn, self.groups[1:]
        if group is None:
            return self.passed_over()
        offsets = offsets_of(batch, group.lanes)
        if not offsets:  # other lanes, or Spark's limits, came first: the group does not explain the batch
            return self.passed_over()
        if times is None:
            bound = any(x.span >= int(group.span) for x in batch.lanes if among(x.lane, self._on_trial))
            after = group.passed(offsets, bound=bound)
        else:
            after = group.stalled(offsets, times, fixed=self.fixed)
        return self._ended((*rest, *after))

    def _ended(self, groups: Iterable[Suspects | None]) -> "Stalls":
        """One batch later. `ready` checks before the next batch whether a group has something to read."""
        later = tuple(g and replace(g, idle=g.idle + 1) for g in groups)
        return replace(self, groups=later if any(later) else ())


def offsets_of(batch: BatchCost, lanes: Iterable[LaneId]) -> float:
    """Mean number of offsets that each of these lanes has read."""
    wanted = by_partition(lanes)
    spans = [x.span for x in batch.lanes if among(x.lane, wanted)]
    return sum(spans) / len(spans) if spans else 0.0


Lanes = Mapping[TopicPartition, Sequence[HashRange]]


def by_partition(lanes: Iterable[LaneId]) -> Lanes:
    """Lanes as ranges of each partition."""
    ranges: defaultdict[TopicPartition, list[HashRange]] = defaultdict(list)
    for tp, hashes in lanes:
        ranges[tp].append(hashes)
    return ranges


def among(lane: LaneId, lanes: Lanes) -> bool:
    """Whether a lane shares hashes with any of these."""
    tp, hashes = lane
    return any(x.intersection(hashes) is not None for x in lanes.get(tp, ()))


def _less(offsets: float, times: float) -> float:
    return max(1.0, offsets / max(1.0, times))
