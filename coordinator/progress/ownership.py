"""The owned hash ranges with their lane epochs, and the facts of an offset that a member may commit or assert. Pure.

A verdict is for the intersections of a lane with the ranges owned at its lane epoch, never for the whole lane
(rule: verdict-per-hash).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Self

from coordinator.progress.leader_epochs import Extents
from coordinator.progress.segments import Progress
from coordinator.progress.stream_offset import Lane, Row, StreamOffset
from coordinator.values.hash_map import HashMap, missing, touching
from coordinator.values.ranges import HashRange, OffsetRange, Offsets
from coordinator.values.subscription import TopicPartition


class Owned(NamedTuple):
    """A hash range and the lane epoch at which it is owned; in a group without order, its offsets too."""

    hashes: HashRange
    epoch: str
    offsets: Offsets = ()  # empty: all


Ownership = Mapping[TopicPartition, tuple[Owned, ...]]


class Fact(NamedTuple):
    """All offsets below `position` are done in `hashes`, and the `offsets` above it. `epoch` is the fence.

    An assertion has no epoch.
    """

    hashes: HashRange
    position: int
    epoch: str = ""
    offsets: Offsets = ()

    @property
    def done(self) -> str:
        """The done offsets as scripts read them: `43,46-47,50-50`."""
        return ",".join(map(str, (self.position, *self.offsets)))

    @classmethod
    def parse(cls, hashes: str, epoch: str, done: str) -> Self:
        """The fact of its three texts."""
        position, *offsets = done.split(",")
        return cls(HashRange.parse(hashes), int(position), epoch, tuple(map(OffsetRange.parse, offsets)))


Facts = dict[TopicPartition, tuple[Fact, ...]]


def held(lane: Lane | Row | Owned, owned: Sequence[Owned]) -> tuple[HashRange, ...]:
    """The parts of the lane's hashes that are owned at its lane epoch. `owned` ascends and is disjoint."""
    parts = (lane.hashes.intersection(o.hashes) for o in touching(owned, lane.hashes) if o.epoch == lane.epoch)
    return tuple(h for h in parts if h)


def not_owned(asked: Iterable[Owned], owned: Sequence[Owned]) -> tuple[HashRange, ...]:
    """The hashes of `asked` that are not owned at their lane epoch; both ascend and are disjoint."""
    return tuple(h for a in asked for h in missing(a.hashes, held(a, owned)))


def narrowed(offset: StreamOffset, ownership: Ownership) -> StreamOffset:
    """The offset with each lane narrowed to the hashes that are owned at its lane epoch; itself if all are."""
    if all(asked_of(offset, lanes) == ownership.get(tp) for tp, lanes in offset.rows.items()):
        return offset
    if not offset.by_key:
        slices = {tp: _same_slices(of_tp[0], ownership.get(tp, ())) for tp, of_tp in offset.lanes.items()}
        return replace(offset, lanes={tp: (lane,) for tp, lane in slices.items() if lane})
    lanes = {
        tp: tuple(
            Lane(h, lane.epoch, lane.position, lane.offsets)
            for lane in lanes
            for h in held(lane, ownership.get(tp, ()))
        )
        for tp, lanes in offset.lanes.items()
    }
    return replace(offset, lanes={tp: parts for tp, parts in lanes.items() if parts})


def remaining(offset: StreamOffset, done: Mapping[TopicPartition, Progress]) -> StreamOffset:
    """The offset with the offsets of each lane that are not done. A partition without an entry stays as it is."""
    lanes = {tp: tuple(_remaining(of_tp, done[tp])) if tp in done else of_tp for tp, of_tp in offset.lanes.items()}
    return replace(offset, lanes=lanes)


def _remaining(lanes: Iterable[Lane], progress: Progress) -> Iterator[Lane]:
    for lane in lanes:
        for s in progress.within(lane.hashes).segments:
            left = tuple(r for offsets in lane.offsets for r in s.remaining(offsets))
            yield lane._replace(hashes=s.hashes, offsets=left)


def _same_slices(lane: Lane, owned: Iterable[Owned]) -> Lane | None:
    """The slices of a lane that are held at its lane epoch; None if there are none."""
    parts = [p for o in owned for p in o.offsets if lane.epoch == o.epoch]
    both = tuple(part for r in lane.offsets for p in parts if (part := r.intersection(p)))
    return Lane(lane.hashes, lane.epoch, both[0].start, both) if both else None


def asked_of(offset: StreamOffset, rows: Sequence[Lane | Row]) -> tuple[Owned, ...]:
    """The ranges that the rows of a partition need: hashes, in a group without order the offsets of its slices too."""
    if offset.by_key:
        return lane_ranges(rows)
    return tuple(Owned(row.hashes, row.epoch, row.offsets) for row in rows)


def completed(offset: StreamOffset) -> Facts:
    """The facts that the member may commit through the fence once the sink has completed `offset`.

    Without order, a slice proves nothing of the offsets before it.
    """
    if not offset.by_key:
        return {
            tp: tuple(Fact(row.hashes, 0, row.epoch, row.offsets) for row in rows) for tp, rows in offset.rows.items()
        }
    done = {
        tp: HashMap((row.hashes, (*_done(row), row.epoch)) for row in lanes).coalesced()
        for tp, lanes in offset.rows.items()
    }
    return {tp: tuple(Fact(h, at, epoch, more) for h, (at, more, epoch) in of_tp) for tp, of_tp in done.items()}


def asserted(offset: StreamOffset, witnessed: Ownership | None) -> Facts:
    """The facts of `offset` that a member may assert without the fence (rule: assert-beginnings).

    Per hash it is the position where the slices begin. It is their end only if this process authorised the slice
    (`witnessed`) and then saw the offset return as start. Lanes of one offset are disjoint, so a hash has the position
    of its lane.
    """
    if not offset.by_key:
        mine = completed(narrowed(offset, witnessed or {}))
        return {tp: tuple(f._replace(epoch="") for f in of_tp) for tp, of_tp in mine.items()}

    def facts(tp: TopicPartition, lane: Row) -> Iterator[Fact]:
        seen = held(lane, witnessed.get(tp, ())) if witnessed is not None else ()
        position, offsets = _done(lane)
        yield from (Fact(h, position, offsets=offsets) for h in seen)
        yield from (Fact(h, lane.position) for h in missing(lane.hashes, seen))

    return {tp: tuple(sorted(f for row in rows for f in facts(tp, row))) for tp, rows in offset.rows.items()}


def lane_ranges(lanes: Sequence[Lane | Row]) -> tuple[Owned, ...]:
    """The hashes of lanes with their lane epochs, ascending. Neighbours of one lane epoch are one range."""
    if len(lanes) == 1:
        return (Owned(lanes[0].hashes, lanes[0].epoch),)
    return tuple(Owned(h, epoch) for h, epoch in HashMap((lane.hashes, lane.epoch) for lane in lanes).coalesced())


def coalesced(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """The same facts; equal facts of neighbours are one."""
    alike = HashMap((f.hashes, (f.position, f.epoch, f.offsets)) for f in facts).coalesced()
    return tuple(Fact(h, *rest) for h, rest in alike)


def _done(lane: Lane | Row) -> tuple[int, Offsets]:
    """The position and the offsets above it after the lane's slices are done (rule: commit-what-was-read).

    Individual commits between them are left out: they may have been deleted since.
    """
    position = lane.offsets[0].until if lane.offsets else lane.position
    return position, lane.offsets[1:]


def facts_within(facts: Facts, ranges: Facts) -> Facts:
    """The parts of `facts` on the hashes of `ranges`."""
    parts = {
        tp: tuple(
            f._replace(hashes=h) for f in facts.get(tp, ()) for r in of_tp if (h := f.hashes.intersection(r.hashes))
        )
        for tp, of_tp in ranges.items()
    }
    return {tp: of_tp for tp, of_tp in parts.items() if of_tp}


def facts_below(facts: Facts, extents: Extents) -> Facts:
    """The facts as far as the log has their records: below the ends of `extents` (rule: leader-epoch-facts)."""
    below = {tp: tuple(_below(f, extent.end) for f in facts[tp]) for tp, extent in extents.items() if tp in facts}
    return {**facts, **below}


def _below(fact: Fact, end: int) -> Fact:
    if fact.position >= end:
        return fact._replace(position=end, offsets=())
    kept = (OffsetRange(o.start, min(o.until, end)) for o in fact.offsets if o.start < end)
    return fact._replace(offsets=tuple(kept))
