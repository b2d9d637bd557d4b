"""Failing keys: each waits at its record, then this record is tried again alone; all other hashes go on. Pure.

    waits, or parked   |####x           its hash is read up to its record
    due                |####x|          ... and this record; the rest once it is done
    passed             |#######         its position has passed the record: the entry is over

The position of a hash decides what is unread. An entry only says when (rule: position-holds-the-key).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from coordinator.plan.planning import OwnedRange, OwnedRanges
from coordinator.progress.failing import FailingRecord
from coordinator.progress.slices import LaneId, Slice
from coordinator.values.hash_map import HashMap, touching
from coordinator.values.subscription import TopicPartition

Records = Mapping[TopicPartition, Sequence[FailingRecord]]
"""The failing records of each partition, by ascending hash."""


@dataclass(frozen=True, slots=True)
class Apart:
    """The work, with failing keys apart from the others."""

    work: OwnedRanges  # of hashes that may read something; a failing key that is due has one record
    held: OwnedRanges  # of failing keys that wait; of a partition at its cap, of all hashes that do not fail
    over: tuple[FailingRecord, ...]  # their positions have passed them
    due: frozenset[LaneId] = field(default_factory=frozenset)


def by_partition(failing: Iterable[FailingRecord]) -> Records:
    """The records by partition."""
    of_tp = defaultdict[TopicPartition, list[FailingRecord]](list)
    for record in failing:
        of_tp[record.tp].append(record)
    return {tp: sorted(records, key=attrgetter("key_hash")) for tp, records in of_tp.items()}


def at_cap(records: Iterable[FailingRecord], most: int) -> frozenset[TopicPartition]:
    """The partitions with so many failing keys, or more (rule: deferred-keys-cap)."""
    return frozenset(tp for tp, count in Counter(r.tp for r in records).items() if count >= most)


def apart(work: OwnedRanges, records: Iterable[FailingRecord], now_ms: int, longest_ms: int, most: int) -> Apart:
    """Each failing key on its own, up to its record. Times beyond `longest_ms` from now (Redis TIME) are wrong.

    A partition with `most` of them reads only these.
    """
    known = by_partition(records)
    full = at_cap((r for of_tp in known.values() for r in of_tp), most)
    reads, held = dict(work), dict[TopicPartition, tuple[OwnedRange, ...]]()
    due = list[LaneId]()
    for tp in known.keys() & work.keys():
        readable, waiting = list[OwnedRange](), list[OwnedRange]()
        for piece, record in _pieces(work[tp], known[tp]):
            limited = piece if record is None else _limited(piece, record, range(now_ms + 1, now_ms + longest_ms + 1))
            waits = tp in full if record is None else not limited.waits(record.offset + 1)
            (waiting if waits else readable).append(_held(piece) if waits else limited)
            if record is not None and not waits:
                due.append((tp, piece.hashes))
        reads[tp] = tuple(readable)
        if waiting:
            held[tp] = tuple(waiting)
    return Apart(reads, held, tuple(_over(work, known)), frozenset(due))


def together(work: OwnedRanges, held: OwnedRanges) -> OwnedRanges:
    """All ranges again, ascending."""
    return {**work, **{tp: tuple(sorted((*work.get(tp, ()), *parts), key=_hashes)) for tp, parts in held.items()}}


_hashes = attrgetter("hashes")


def _over(work: OwnedRanges, known: Records) -> Iterator[FailingRecord]:
    for tp, records in known.items():
        for owned in work.get(tp, ()):
            yield from (r for r in touching(records, owned.hashes) if r.offset < owned.position)


def _pieces(
    ranges: Iterable[OwnedRange], records: Sequence[FailingRecord]
) -> Iterator[tuple[OwnedRange, FailingRecord | None]]:
    """The ranges, cut at both ends of each failing hash; each with its failing record."""
    for owned in ranges:
        failing = (r for r in touching(records, owned.hashes) if r.offset >= owned.position)
        for hashes, record in HashMap((r.hashes, r) for r in failing).filled(owned.hashes, None):
            yield owned.within(hashes), record


def _limited(piece: OwnedRange, record: FailingRecord, later: range) -> OwnedRange:
    waits = record.parked or record.next_ms in later
    return piece._replace(ceiling=piece.reach(record.offset if waits else record.offset + 1))


def _held(piece: OwnedRange) -> OwnedRange:
    return piece._replace(ceiling=piece.reach(piece.position))


def of_slices(records: Records, slices: Iterable[Slice]) -> tuple[FailingRecord, ...]:
    """The failing records that some slices contain."""
    return tuple(
        record
        for s in slices
        for record in touching(records.get(s.topic_partition, ()), s.hashes)
        if s.offsets.start <= record.offset < s.offsets.until
    )


def room(records: Records, tasks: Iterable[Iterable[Slice]], most: int) -> dict[TopicPartition, int]:
    """How many more keys of a partition each task may defer: its part of the room below the cap."""
    readers = Counter(tp for task in tasks for tp in {s.topic_partition for s in task})
    left = {tp: most - len(records.get(tp, ())) for tp in readers}
    return {tp: max(1, left[tp] // readers[tp]) if left[tp] > 0 else 0 for tp in readers}
