"""Which hash ranges a member owns, at which lane epoch; and what it may commit or assert of an offset.

The verdict on a lane is never for the whole lane: it is for the intersections of the lane with what
is owned at its epoch (spec 4.2, Fence). Pure.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, takewhile

from coordinator.ranges import HashRange
from coordinator.stream_offset import Lane, StreamOffset
from coordinator.subscription import TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class Owned:
    """A hash range and the lane epoch at which it is owned."""

    hashes: HashRange
    epoch: str


Ownership = Mapping[TopicPartition, tuple[Owned, ...]]


@dataclass(frozen=True, slots=True, order=True)
class Fact:
    """Everything left of `position` is done in `hashes`; `epoch` is the fence, empty for an assertion."""

    hashes: HashRange
    position: int
    epoch: str = ""


Facts = dict[TopicPartition, tuple[Fact, ...]]


def held(lane: Lane, owned: tuple[Owned, ...]) -> tuple[HashRange, ...]:
    """The parts of the lane's hashes that are owned at the lane's epoch; `owned` ascends and is disjoint."""
    first = max(0, bisect_right(owned, lane.hashes.lo, key=lambda o: o.hashes.lo) - 1)
    near = takewhile(lambda o: o.hashes.lo <= lane.hashes.hi, islice(owned, first, None))
    parts = (lane.hashes.intersection(o.hashes) for o in near if o.epoch == lane.epoch)
    return tuple(h for h in parts if h)


def missing(hashes: HashRange, covered: tuple[HashRange, ...]) -> tuple[HashRange, ...]:
    """The parts of `hashes` that `covered`, ascending and disjoint, leaves out."""
    left, lo = [], hashes.lo
    for c in covered:
        if lo < c.lo:
            left.append(HashRange(lo, c.lo - 1))
        lo = c.hi + 1
    return (*left, HashRange(lo, hashes.hi)) if lo <= hashes.hi else tuple(left)


def narrowed(offset: StreamOffset, ownership: Ownership) -> StreamOffset:
    """The offset with each lane narrowed to what is owned at its epoch."""
    lanes = {
        tp: tuple(
            Lane(h, lane.epoch, lane.position, lane.offsets)
            for lane in lanes
            for h in held(lane, ownership.get(tp, ()))
        )
        for tp, lanes in offset.lanes.items()
    }
    return StreamOffset(
        offset.group, offset.member, offset.reset, offset.topic_ids, {tp: x for tp, x in lanes.items() if x}
    )


def completed(offset: StreamOffset) -> Facts:
    """What the sink's completion of `offset` lets its member commit, through the fence."""
    return _facts(offset, lambda lane: iter([Fact(lane.hashes, lane.until, lane.epoch)]))


def asserted(offset: StreamOffset, witnessed: Ownership | None) -> Facts:
    """What a member may assert of `offset` without the fence (spec 7).

    Per hash the position that the slices begin at; their end only where this very process
    authorised the slice (`witnessed`) and then saw the offset come back as start. Lanes of one
    offset are disjoint, so "the smallest from of all slices that cover a hash" is the lane's own.
    """

    def facts(tp: TopicPartition, lane: Lane) -> Iterator[Fact]:
        seen = held(lane, witnessed.get(tp, ())) if witnessed is not None else ()
        yield from (Fact(h, lane.until) for h in seen)
        yield from (Fact(h, lane.position) for h in missing(lane.hashes, seen))

    return {tp: tuple(sorted(f for lane in lanes for f in facts(tp, lane))) for tp, lanes in offset.lanes.items()}


def _facts(offset: StreamOffset, of: Callable[[Lane], Iterator[Fact]]) -> Facts:
    return {tp: tuple(f for lane in lanes for f in of(lane)) for tp, lanes in offset.lanes.items()}
