"""Records on which the user's function fails: the task's part, as `TaskEnds` of the source, and the promises.

A record fails for some calls, or until it is healed. After `ENOUGH` attempts its key is parked, or the record is
dead-lettered: it counts as delivered.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from coordinator.progress.ends import Ends
from coordinator.progress.failing import FailingRecord, Failures
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import TopicPartition
from simulation.kafka import Record
from simulation.sink import Violation
from simulation.state import Key, State

ENOUGH = 3
LONGEST_DELAY_MS = 12_000


@dataclass(slots=True)
class Deferring:
    """The failing keys of one attempt of a task that may defer them."""

    known: Mapping[Key, FailingRecord]
    room: dict[TopicPartition, int]
    stopped: dict[Key, int] = field(default_factory=dict)  # the first offset that the key did not get
    failing: dict[Key, FailingRecord] = field(default_factory=dict)

    def stops(self, record: Record) -> bool:
        """Whether the key of a record gets no more."""
        return (record.tp, record.hash) in self.stopped

    def attempts(self, record: Record) -> int:
        """The attempts at a record in earlier batches."""
        known = self.known.get((record.tp, record.hash))
        return known.attempts if known and known.offset == record.offset else 0

    def defer(self, record: Record, attempts: int, next_ms: int, *, parked: bool) -> None:
        """The key gets nothing from this record on. Without room, nothing is stored."""
        key = record.tp, record.hash
        self.stopped[key] = record.offset
        if key not in self.known:
            if self.room.get(record.tp, 1) <= 0:
                return
            self.room[record.tp] = self.room.get(record.tp, 1) - 1
        self.failing[key] = FailingRecord(
            record.tp, record.hash, record.offset, attempts, next_ms, parked, "Error", "x"
        )

    @property
    def failures(self) -> Failures:
        """The failing records."""
        return Failures(tuple(self.failing.values()))

    def ends(self, ends: Ends, planned: Mapping[TopicPartition, int]) -> Ends:
        """The ends of the task, lowered where its keys stopped."""
        found = {tp: list(of_tp) for tp, of_tp in ends.items()}
        for (tp, key_hash), offset in sorted(self.stopped.items()):
            before = found.get(tp, [(WHOLE, planned[tp])])
            found[tp] = [piece for hashes, end in before for piece in _lowered(hashes, end, key_hash, offset)]
        return {tp: HashMap(of_tp) for tp, of_tp in found.items()}


def _lowered(hashes: HashRange, end: int, key_hash: int, offset: int) -> Iterable[tuple[HashRange, int]]:
    if key_hash not in hashes:
        return [(hashes, end)]
    below, above = (hashes.lo, key_hash - 1), (key_hash + 1, hashes.hi)
    others = [(HashRange(lo, hi), end) for lo, hi in (below, above) if lo <= hi]
    return sorted([*others, (HashRange(key_hash, key_hash), min(end, offset))])


def waits_for_its_time(planned: Collection[Record], before: State, now: State, asked_ms: int, now_ms: int) -> int:
    """How many failing records are tried again. Each is planned at its time, alone (rule: one-record-at-its-time).

    `asked_ms` and `now_ms`: Redis TIME before the call that planned these records, and after it. The clock may have
    been set meanwhile: the later one counts. A time further ahead than any delay is of a clock that was wrong.
    """
    tried = 0
    for key, entry in before.failing.items():
        steady = now.failing.get(key) == entry
        at = [state.at_hash(*key) for state in (before, now)]
        if not steady or max(at) > entry.offset or min(at) > entry.offset:
            continue
        of_key = [r for r in planned if (r.tp, r.hash) == key]
        latest = max(asked_ms, now_ms)
        waits = entry.parked or latest < entry.next_ms <= min(asked_ms, now_ms) + LONGEST_DELAY_MS
        if wrong := [r for r in of_key if r.offset > entry.offset - waits]:
            raise Violation(f"WAIT: {wrong[0]} is planned at {asked_ms}-{now_ms}, though {entry}")
        tried += bool(of_key)
    return tried


def bounded(before: State, now: State, now_ms: int) -> None:
    """No key waits longer than the longest delay, whatever the clock of a task's host says (rule: clock-ahead)."""
    for key, entry in now.failing.items():
        if before.failing.get(key) != entry and entry.next_ms > now_ms + LONGEST_DELAY_MS:
            raise Violation(f"DELAY: {entry} waits longer than any delay, at {now_ms}")


def counts_on(before: State, now: State) -> None:
    """Attempts at a record count over batches, drivers and restarts; a parked key stays parked until it is released."""
    if (before.nonce, before.run_id) != (now.nonce, now.run_id):
        return
    for key, entry in before.failing.items():
        later = now.failing.get(key)
        if later is None or later == entry:
            continue
        if later.offset == entry.offset and (later.attempts <= entry.attempts or entry.parked):
            raise Violation(f"ATTEMPTS: {later} after {entry}")
        if later.offset < entry.offset:
            raise Violation(f"ATTEMPTS: {later} of an earlier owner replaces {entry}")
