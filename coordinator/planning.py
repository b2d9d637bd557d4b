"""The plan of one micro-batch: how owned ranges are cut in lanes and how far each lane reads (spec 4.3).

Pure: positions, log ends and limits in, lanes of a stream offset out. Which slices share a task is
decided later, from the offset alone, by `packing`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from coordinator.key_hash import cut_bound
from coordinator.lanes import cut_for_records, lane_count
from coordinator.ownership import Ownership
from coordinator.progress import Progress, Rectangle, Segment
from coordinator.ranges import HASH_MAX, HashRange, OffsetRange
from coordinator.stream_offset import Lane, Lanes
from coordinator.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class Cutting:
    """How finely partitions are cut; None means no wish."""

    slots: int
    lanes: int | None = None
    min_partitions: int | None = None
    max_records_per_partition: int | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """An owned part of a segment: the planner's unit of work."""

    segment: Segment
    epoch: str

    @property
    def share(self) -> float:
        """Share of the hash space."""
        return self.segment.hashes.size / (HASH_MAX + 1)

    def backlog(self, until: int) -> float:
        """Records to read up to `until` if keys are spread evenly."""
        return self.share * max(0, until - self.segment.position)


Pieces = Mapping[TopicPartition, tuple[Piece, ...]]


def pieces(ownership: Ownership, progress: Mapping[TopicPartition, Progress]) -> Pieces:
    """Every owned range with its positions, segment by segment."""
    return {
        tp: tuple(Piece(s, o.epoch) for o in owned for s in progress[tp].within(o.hashes).segments)
        for tp, owned in ownership.items()
    }


def backlog(work: Pieces, ends: Mapping[TopicPartition, int]) -> float:
    """Records not yet read in all of `work`, if keys are spread evenly."""
    return sum(p.backlog(ends[tp]) for tp, parts in work.items() for p in parts)


def levels(work: Pieces, ends: Mapping[TopicPartition, int], limit: float | None) -> dict[TopicPartition, int]:
    """How far each partition may be read: its end, or less so that the sum of weights keeps to `limit`.

    Partitions share the limit in proportion to their backlogs, and each gets at least one offset,
    as in Spark's source. Within a partition the lanes furthest behind come first: a level is
    raised over them like water.

        position  |####      ~~~~|          lane a reads up to the level
                  |########  ~~~~|          lane b too
                  |############### |        lane c is ahead: reads nothing
                                 ^ level
    """
    total = backlog(work, ends)
    if limit is None or total <= limit:
        return dict(ends)
    return {
        tp: _level(parts, ends[tp], limit * sum(p.backlog(ends[tp]) for p in parts) / total)
        for tp, parts in work.items()
    }


def _level(parts: tuple[Piece, ...], end: int, quota: float) -> int:
    positions = sorted((p.segment.position, p.share) for p in parts if p.segment.position < end)
    if not positions:
        return end
    level, share = positions[0][0], 0.0
    for position, piece_share in positions:
        if share * (position - level) > quota:
            break
        quota, level, share = quota - share * (position - level), position, share + piece_share
    return min(end, max(level + int(quota / share), positions[0][0] + 1))


def plan(work: Pieces, until: Mapping[TopicPartition, int], cutting: Cutting) -> Lanes:
    """The lanes of a batch that reads each partition up to `until`.

    A range with nothing to read is one idle lane, so that the offset still says who owns it; a
    partition without owned ranges is left out.
    """
    active = sum(any(p.backlog(until[tp]) for p in parts) for tp, parts in work.items())
    count = lane_count(active, slots=cutting.slots, lanes=cutting.lanes, min_partitions=cutting.min_partitions)
    bounds = tuple(cut_bound(i, count) for i in range(1, count))
    return {tp: tuple(_lanes(parts, until[tp], bounds, cutting)) for tp, parts in sorted(work.items()) if parts}


def _lanes(parts: Iterable[Piece], until: int, bounds: tuple[int, ...], cutting: Cutting) -> Iterator[Lane]:
    for piece in parts:
        s = piece.segment
        if s.position >= until:
            yield Lane(s.hashes, piece.epoch, s.position)
            continue
        for hashes in _cut(s.hashes, OffsetRange(s.position, until), bounds, cutting.max_records_per_partition):
            offsets = tuple(
                r.offsets
                for r in Progress((s.within(hashes),)).remaining(Rectangle(hashes, OffsetRange(s.position, until)))
            )
            yield Lane(hashes, piece.epoch, s.position, offsets)


def _cut(
    hashes: HashRange, offsets: OffsetRange, bounds: tuple[int, ...], max_records: int | None
) -> Iterator[HashRange]:
    for part in hashes.cut(bounds):
        yield from (part,) if max_records is None else cut_for_records(part, offsets, max_records)


def backlog_ready(waiting: float, *, min_offsets: int | None, since_last_ms: int | None, max_delay_ms: int) -> bool:
    """Whether enough is waiting for a batch: `minOffsetsPerTrigger`, bounded by `maxTriggerDelay` (Spark's rule).

    The first batch of a query never waits (`since_last_ms` is None).
    """
    return min_offsets is None or since_last_ms is None or since_last_ms >= max_delay_ms or waiting >= min_offsets
