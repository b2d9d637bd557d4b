"""The plan of one micro-batch: from positions, log ends and limits to the lanes of a stream offset. Pure.

`packing` decides later, from the offset alone, which slices share a task.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from coordinator.plan.joined_topics import JoinedNames, shared_by_units
from coordinator.plan.lane_bounds import LaneBounds, Piece
from coordinator.plan.lanes import cut_for_records, finest_piece, fixed_lanes
from coordinator.progress.growth import Ceilings
from coordinator.progress.ownership import Owned, Ownership
from coordinator.progress.segments import Progress
from coordinator.progress.stream_offset import Lanes, LanesOfRows, Row
from coordinator.values.key_hash import cut_bound
from coordinator.values.ranges import HashRange, OffsetRange, Offsets, subtract
from coordinator.values.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class Cutting:
    """The options that cut partitions into lanes. None: not set."""

    slots: int
    lanes: int | None = None
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    bounds: LaneBounds | None = None  # None: the other fields decide
    by_offset: bool = False  # without order: tasks share a partition by offsets
    joined: JoinedNames = ()  # topics whose partitions of one number are cut alike
    in_order: frozenset[str] = frozenset()  # topics whose partitions are not cut (rule: partition-order)

    def at(self, bounds: LaneBounds) -> "Cutting":
        """The same options with lanes that begin at these bounds. Only `max_records_per_partition` may cut finer."""
        return replace(self, bounds=bounds)

    @property
    def tasks(self) -> int:
        """The most tasks, unless `max_records_per_partition` needs more."""
        return max(self.slots, self.min_partitions or 0)


class OwnedRange(NamedTuple):
    """An owned part of a segment, the unit of planning. `ceiling`: the end of reading; None: the partition's end."""

    hashes: HashRange
    position: int
    epoch: str
    ceiling: int | None = None
    ics: Offsets = ()

    @property
    def share(self) -> float:
        """Share of the hash space."""
        return self.hashes.share

    def reach(self, until: int) -> int:
        """The end of reading it, if its partition is read up to `until`."""
        return until if self.ceiling is None else min(until, self.ceiling)

    def within(self, hashes: HashRange) -> "OwnedRange":
        """The part of it in `hashes`, which lie within it."""
        return self if hashes == self.hashes else OwnedRange(hashes, self.position, self.epoch, self.ceiling, self.ics)

    def waits(self, until: int) -> bool:
        """Whether it has an offset to read below `until`."""
        return self.position < (until if self.ceiling is None else min(until, self.ceiling))

    def backlog(self, until: int) -> float:
        """Records to read up to `until` if keys are spread evenly."""
        return self.share * max(0, self.reach(until) - self.position)


OwnedRanges = Mapping[TopicPartition, tuple[OwnedRange, ...]]


def with_positions(ownership: Ownership, progress: Mapping[TopicPartition, Progress]) -> OwnedRanges:
    """Every owned range with its positions, segment by segment."""
    return {tp: tuple(_ranges_of(owned, progress[tp])) for tp, owned in ownership.items()}


def _ranges_of(owned: Iterable[Owned], progress: Progress) -> Iterator[OwnedRange]:
    whole = progress.segments[0] if len(progress.segments) == 1 else None
    for hashes, epoch, _ in owned:
        for s in (whole,) if whole and whole.hashes == hashes else progress.within(hashes).segments:
            yield OwnedRange(s.hashes, s.position, epoch, ics=s.ics)


def bounded(parts: Iterable[OwnedRange], ceilings: Ceilings) -> tuple[OwnedRange, ...]:
    """The pieces, cut where the ceilings differ. Each has the lower of its own ceiling and that of its hashes."""
    cut = ((p.within(h), ceiling) for p in parts for h, ceiling in ceilings.within(p.hashes))
    return tuple(p._replace(ceiling=_lower(p.ceiling, ceiling)) for p, ceiling in cut)


def _lower(one: int | None, other: int | None) -> int | None:
    return min((c for c in (one, other) if c is not None), default=None)


def anything(work: OwnedRanges, ends: Mapping[TopicPartition, int]) -> bool:
    """Whether there is an offset to read."""
    return any(p.waits(ends[tp]) for tp, parts in work.items() for p in parts)


def backlog(work: OwnedRanges, ends: Mapping[TopicPartition, int]) -> float:
    """Records not yet read in all of `work`, if keys are spread evenly."""
    return sum(p.backlog(ends[tp]) for tp, parts in work.items() for p in parts)


def levels(work: OwnedRanges, ends: Mapping[TopicPartition, int], limit: float | None) -> dict[TopicPartition, int]:
    """The end of reading of each partition: its log end, or less, so that the sum of weights keeps to `limit`.

    Partitions share the limit in proportion to their backlogs. Each gets at least one offset, as in Spark's source.
    In a partition the lanes furthest behind come first: a level rises over them like water.

        position  |####      ~~~~|          lane a reads up to the level
                  |########  ~~~~|          lane b too
                  |############### |        lane c is ahead: reads nothing
                                 ^ level
    """
    total = 0.0 if limit is None else backlog(work, ends)
    if limit is None or total <= limit:
        return dict(ends)
    return {
        tp: level(
            [(p.position, p.reach(ends[tp]), p.share) for p in parts],
            ends[tp],
            limit * sum(p.backlog(ends[tp]) for p in parts) / total,
        )
        for tp, parts in work.items()
    }


def level(parts: Iterable[tuple[int, int, float]], end: int, quota: float) -> int:
    """The height at which the water over parts of a partition is `quota`. It is at least one offset above the lowest.

    Each part has its position, its reach, and its records per offset.
    """
    beds = [bed for bed in parts if bed[0] < bed[1]]
    if not beds:
        return end
    turns = sorted((at, change) for low, high, share in beds for at, change in ((low, share), (high, -share)))
    lowest = level = turns[0][0]
    width = 0.0
    for at, change in turns:
        if width > 0 and width * (at - level) > quota:
            break
        quota, level, width = quota - width * (at - level), at, width + change
    return min(end, max(level + int(quota / width) if width > 0 else level, lowest + 1))


def lane_bounds(work: OwnedRanges, until: Mapping[TopicPartition, int], cutting: Cutting) -> LaneBounds:
    """The bounds of all lanes: those that are given, the user's number for each partition, or one lane for each task.

    Without known costs, work is records, and keys are spread evenly.
    """
    if cutting.bounds is not None:
        return cutting.bounds
    if cutting.lanes is not None:
        count = fixed_lanes(_active(work, until), cutting.lanes)
        return dict.fromkeys(work, tuple(cut_bound(i, count) for i in range(1, count)))
    pieces = {tp: [Piece(p.hashes, p.backlog(until[tp])) for p in parts] for tp, parts in work.items()}
    return shared_by_units(pieces, cutting.tasks, {}, cutting.joined, soon=False)


def _active(work: OwnedRanges, until: Mapping[TopicPartition, int]) -> int:
    """The number of partitions with something to read."""
    return sum(any(p.waits(until[tp]) for p in parts) for tp, parts in work.items())


def plan(work: OwnedRanges, until: Mapping[TopicPartition, int], cutting: Cutting) -> Lanes:
    """The lanes of a batch that reads each partition up to `until`.

    A range without unread offsets is one idle lane, which names its owner. Partitions without ranges are left out.
    """
    bounds = lane_bounds(work, until, cutting)
    most = cutting.max_records_per_partition
    cut = partial(_cut, max_records=most, finest=finest_piece(_active(work, until)) if most else 1)
    return LanesOfRows(
        {
            tp: tuple(
                _rows(
                    parts,
                    until[tp],
                    _whole if tp.topic in cutting.in_order else partial(cut, bounds=bounds.get(tp, ())),
                )
            )
            for tp, parts in sorted(work.items())
            if parts
        }
    )


def _rows(parts: Iterable[OwnedRange], until: int, cut: Callable[..., tuple[HashRange, ...]]) -> Iterator[Row]:
    alike: dict[tuple[int, int, Offsets], Offsets] = {}  # mostly all lanes of a partition read the same offsets
    for owned in parts:
        position, reach = owned.position, owned.reach(until)
        if position >= reach:
            yield Row(owned.hashes, owned.epoch, position, (), (owned.hashes,))
            continue
        offsets = alike.get((position, reach, owned.ics))
        if offsets is None:
            offsets = alike[position, reach, owned.ics] = subtract(OffsetRange(position, reach), owned.ics)
        lanes = cut(owned.hashes, position, reach)
        yield Row(owned.hashes, owned.epoch, position, offsets, lanes)


def _whole(hashes: HashRange, position: int, reach: int) -> tuple[HashRange, ...]:
    return (hashes,)


def _cut(
    hashes: HashRange, position: int, reach: int, *, bounds: tuple[int, ...], max_records: int | None, finest: int
) -> tuple[HashRange, ...]:
    parts = hashes.cut(bounds) if bounds else (hashes,)
    if max_records is None:
        return parts
    offsets = OffsetRange(position, reach)
    return tuple(h for part in parts for h in cut_for_records(part, offsets, max_records, finest))
