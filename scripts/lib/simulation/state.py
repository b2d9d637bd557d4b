"""The group in Redis at one look of the simulation, with queries on it."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from coordinator.assignment.assignment_text import ranges_of
from coordinator.assignment.rebalance import union
from coordinator.plan.poison import Strike
from coordinator.progress.failing import FailingRecord
from coordinator.progress.growth import Growth
from coordinator.progress.segments import Segment
from coordinator.values.hash_map import missing
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition
from simulation.kafka import Record

Key = tuple[TopicPartition, int]  # a key hash of a partition
Segments = tuple[tuple[HashRange, int], ...]
Holder = tuple[str, str]  # lane epoch and member, of an offset in a group without order
Owners = tuple[tuple[HashRange, str, str], ...]  # with lane epoch and member


@dataclass(frozen=True, slots=True)
class Members:
    """The members and the topics of the group, which change far more often than its state."""

    standbys: Mapping[str, str] = field(default_factory=dict)  # their roles
    topics: Collection[str] = ()
    leaving: Collection[str] = ()
    leases: Mapping[str, float] = field(default_factory=dict)  # the end of each
    hung: Mapping[str, float] = field(default_factory=dict)  # from when on the batch of each counts as hung

    def alive(self, now_ms: int) -> list[str]:
        """Those with a lease."""
        return [member for member, end_ms in self.leases.items() if end_ms >= now_ms]


@dataclass(frozen=True, slots=True)
class State:
    """The group in Redis, read by one script."""

    nonce: str | None = None  # None: Redis has no group
    run_id: str = ""
    recovering_until: int = 0
    reset: int = 0
    filter: str = ""  # the text of the record filter in force
    segments: Mapping[TopicPartition, Segments] = field(default_factory=dict)
    ics: Mapping[TopicPartition, tuple[Segment, ...]] = field(default_factory=dict)  # segments with individual commits
    owners: Mapping[TopicPartition, Owners] = field(default_factory=dict)  # without those of an older nonce
    handed: Mapping[TopicPartition, Mapping[int, Holder]] = field(default_factory=dict)  # without an older nonce
    assignment: Mapping[str, str] = field(default_factory=dict)  # member -> JSON of its ranges
    strikes: frozenset[Strike] = frozenset()
    growths: tuple[Growth, ...] = ()
    failing: Mapping[Key, FailingRecord] = field(default_factory=dict)
    forbids: bool = False  # whether a policy of the group forbids sharing, or is not known

    def position(self, record: Record) -> int:
        """The position of the segment of a record; 0 without a segment."""
        return self.at_hash(record.tp, record.hash)

    def at_hash(self, tp: TopicPartition, key_hash: int) -> int:
        """The position of a hash; 0 without a segment."""
        return next((position for hashes, position in self.segments.get(tp, ()) if key_hash in hashes), 0)

    def owner(self, tp: TopicPartition, key_hash: int) -> str:
        """The member that owns a hash; empty without one."""
        return next((member for hashes, _, member in self.owners.get(tp, ()) if key_hash in hashes), "")

    def acknowledged(self, record: Record) -> bool:
        """Whether an individual commit above the position contains a record."""
        return any(
            record.hash in s.hashes and any(r.start <= record.offset < r.until for r in s.ics)
            for s in self.ics.get(record.tp, ())
        )

    def done(self, record: Record) -> bool:
        """Whether no member will read a record: it is left of its position, or acknowledged."""
        return record.offset < self.position(record) or self.acknowledged(record)

    def has(self, tp: TopicPartition, key_hash: int, offset: int) -> bool:
        """Whether an offset is done at a hash: it is left of the position, or in an individual commit."""
        ics = (r for s in self.ics.get(tp, ()) if key_hash in s.hashes for r in s.ics)
        return offset < self.at_hash(tp, key_hash) or any(r.start <= offset < r.until for r in ics)

    def epoch(self, tp: TopicPartition, key_hash: int) -> str | None:
        """The lane epoch of a hash's owner; None without an owner."""
        return next((epoch for hashes, epoch, _ in self.owners.get(tp, ()) if key_hash in hashes), None)

    def parked(self, record: Record, *, in_order: bool = False) -> bool:
        """Whether a record waits for an operator, or for an older partition with such a record of its hash.

        In partition order it waits for such a record of any hash.
        """
        found = [(s.tp, s.offset) for s in self.strikes if s.parked and (in_order or record.hash in s.hashes)]
        found += [(f.tp, f.offset) for f in self.parked_keys if in_order or f.key_hash == record.hash]
        return any(offset <= record.offset if tp == record.tp else tp < record.tp for tp, offset in found)

    @property
    def parked_keys(self) -> list[FailingRecord]:
        """The failing records that wait for an operator."""
        return [f for f in self.failing.values() if f.parked]

    def held(self, tp: TopicPartition) -> int:
        """The number of individual commits of a partition."""
        return sum(len(s.ics) for s in self.ics.get(tp, ()))

    def within(self, pinned: Collection[HashRange]) -> "State":
        """The part that a member pinned to these ranges counts; all of it without ranges."""

        def named(hashes: HashRange) -> bool:
            return not pinned or any(hashes.intersection(each) for each in pinned)

        segments = {tp: tuple(s for s in of_tp if named(s[0])) for tp, of_tp in self.segments.items()}
        return replace(
            self, segments=segments, ics={tp: tuple(s for s in x if named(s.hashes)) for tp, x in self.ics.items()}
        )

    def full(self, tp: TopicPartition, most_ics: int, most_deferred: int) -> bool:
        """Whether what is parked keeps a partition at a cap: all its lanes wait until an operator releases it."""
        failing = [f for f in self.failing.values() if f.tp == tp]
        parked = [f for f in failing if f.parked or any(s.parked and f.key_hash in s.hashes for s in self.strikes)]
        return bool(parked) and (self.held(tp) >= most_ics or len(failing) == len(parked) >= most_deferred)

    def stable(self, tp: TopicPartition) -> int:
        """The smallest position of a partition."""
        return min((position for _, position in self.segments.get(tp, ())), default=0)

    def last_gap(self, record: Record) -> int:
        """The end of the last gap in a record's segment; its position without a gap."""
        ends = (s.ics[-1].start for s in self.ics.get(record.tp, ()) if record.hash in s.hashes)
        return next(ends, self.position(record))

    def settled(self, members: Iterable[str]) -> bool:
        """Whether exactly these members own everything, each its assigned ranges."""
        owned: dict[str, dict[TopicPartition, list[HashRange]]] = {m: {} for m in members}
        for tp, owners in self.owners.items():
            for hashes, _, member in owners:
                owned.setdefault(member, {}).setdefault(tp, []).append(hashes)
        assigned = {member: ranges_of(text) for member, text in self.assignment.items()}
        return assigned.keys() == owned.keys() and all(
            {tp: union(hashes) for tp, hashes in owned[m].items()} == {tp: union(h) for tp, h in ranges.items() if h}
            for m, ranges in assigned.items()
        )

    def at_but_parked(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether every hash of every partition that is not parked has been read to its end.

        A new partition waits for the same hashes of older ones (rule: growth-order).
        """
        return all(
            tp in self.segments
            and all(
                position >= end or not missing(hashes, self._parked_below(tp, position))
                for hashes, position in self.segments[tp]
            )
            for tp, end in ends.items()
        )

    def _parked_below(self, tp: TopicPartition, position: int) -> list[HashRange]:
        parked = [(s.tp, s.hashes, s.offset) for s in self.strikes if s.parked]
        parked += [(f.tp, HashRange(f.key_hash, f.key_hash), f.offset) for f in self.parked_keys]
        return [hashes for at, hashes, offset in parked if at < tp or (at == tp and offset <= position)]

    def at(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether every hash of every partition has been read to its end."""
        return all(
            tp in self.segments and all(position >= end for _, position in self.segments[tp])
            for tp, end in ends.items()
        )
