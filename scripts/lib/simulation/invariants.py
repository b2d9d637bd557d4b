"""Conditions that the state in Redis meets after every step."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import redis

from coordinator.assignment.policies import Policy, policy_of
from coordinator.plan.poison import Strike
from coordinator.progress.failing import FailingRecord
from coordinator.progress.growth import parsed
from coordinator.progress.mirror import extents, is_mirror, mirrored, of_founding, since_reset
from coordinator.progress.segments import Progress, Segment, sound_commits_of
from coordinator.redis.keys import GroupKeys
from coordinator.values.ranges import HASH_MAX, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition
from simulation.kafka import HASHES, TOPIC, Record, SimulatedKafka
from simulation.sink import Sink, Violation
from simulation.state import Holder, Members, Owners, Segments, State

_LOOK = (Path(__file__).parent / "look.lua").read_text()

_FIXED = 7  # number of values in the reply before those of partitions


class Invariants:
    """Reads the group and compares it with Kafka and the sink."""

    def __init__(self, look: Callable[..., Any], keys: GroupKeys, kafka: SimulatedKafka, sink: Sink) -> None:
        self._look, self._keys, self._kafka, self._sink = look, keys, kafka, sink
        self._epochs: dict[str, set[tuple[str, TopicPartition, int]]] = {}  # the cells of each at the last look
        self.last_owner: dict[tuple[TopicPartition, int], str] = {}  # the latest lane epoch of each hash
        self._tps: tuple[TopicPartition, ...] = ()
        self._names: list[str] = []
        self._before: object = None
        self.assigned: Callable[[Mapping[str, str], Policy], None] = lambda _, __: None
        self._generation: str | None = None  # of the last assignment that was computed
        self.excused: Callable[[Record], bool] = lambda _: False  # positions may be above it
        self.redis_ms: Callable[[], int] = lambda: 0  # the time of Redis
        self.reset = 0  # the latest reset epoch that was ever in force
        self.founding = ""  # of the latest group of this name
        self.base: dict[TopicPartition, int] = {}  # the group's first position of each partition
        self.nonce_before: str | None = None  # at the look before
        self.members = Members()  # at the last look
        self.leases_before: Mapping[str, float] = {}  # at the look before
        self.placed_again = 0  # partitions, after a loss of state
        self._deleted: set[TopicPartition] = set()  # by an operator, and not placed since
        self.states = [State()]  # all states so far, in order
        self._sound = State()  # the latest one that is no old copy

    @property
    def state(self) -> State:
        """The group at the last look."""
        return self.states[-1]

    def check(self) -> None:
        """Read the group, and raise `Violation` if a condition fails."""
        tps = tuple(self._kafka.logs)
        if tps != self._tps:
            k = self._keys
            self._tps, self._names = tps, [k.meta, k.stable(TOPIC), k.assignment, k.strikes, k.policy, k.growth]
            self._names += [k.failing]
            self._names += [k for tp in tps for k in (self._keys.segments(tp), self._keys.owners(tp))]
            self._names += [self._keys.ics(tp) for tp in tps] + [self._keys.handed(tp) for tp in tps]
            self._names += [k.stable(topic) for topic in self._kafka.topics[1:]]
            self._names += [k.standbys, k.topics, k.leaving, k.leases, k.batches]
        *found, standbys, topics, leaving, leases, hung = self._look(keys=self._names)
        self.nonce_before, self.leases_before = self.state.nonce, self.members.leases
        self.members = Members(_dict(standbys), topics, leaving, _times(leases), _times(hung))
        if (tps, found) != self._before:
            self._before = tps, found
            self._check(tps, found)
        self._not_ahead_of_sink()

    def _check(self, tps: Sequence[TopicPartition], found: list[Any]) -> None:
        nonce, run_id, recovering_until, reset, of_filter, founding, generation = found[0]
        stable, assignment, strikes, policy, growth, failing = map(_dict, found[1:_FIXED])
        of_tps, of_ics = found[_FIXED : _FIXED + 2 * len(tps)], found[_FIXED + 2 * len(tps) : _FIXED + 3 * len(tps)]
        of_handed = found[_FIXED + 3 * len(tps) : _FIXED + 4 * len(tps)]
        of_topics = dict(zip(self._kafka.topics, (stable, *map(_dict, found[_FIXED + 4 * len(tps) :])), strict=True))
        handed = {tp: _handed(tp, flat, nonce) for tp, flat in zip(tps, of_handed, strict=True)}
        segments = {tp: _parsed(flat) for tp, flat in zip(tps, of_tps[::2], strict=True) if flat}
        current: dict[TopicPartition, Owners] = {}
        for tp, flat in zip(tps, of_tps[1::2], strict=True):
            owners = _owners(flat)
            if tp in segments:
                self.base.setdefault(tp, min(p for _, p in segments[tp]))
                if run_id != "0" and tp not in self._sound.segments and founding == self.founding:
                    self._begins_where_it_was(tp, min(p for _, p in segments[tp]), int(reset or 0))
                _tile(tp, segments[tp], owners)
                _stable(tp, segments[tp], of_topics[tp.topic].get(str(tp.partition)))
            elif owners or str(tp.partition) in of_topics[tp.topic]:
                raise Violation(f"NO SEGMENTS: {tp} has owners or a stable offset and no positions")
            current[tp] = tuple(o for o in owners if o[1].startswith(f"{nonce}."))
        if run_id != "0":  # else an old copy, in which no script succeeds
            self._one_ownership_an_epoch(current, handed)
        computed, self._generation = generation != self._generation, generation  # not kept by a recovery or a drain
        if computed and "0" != run_id == self.state.run_id:
            self.assigned(assignment, policy_of(policy))
        ics = {tp: _ics(tp, *flat) for tp, *flat in zip(tps, of_tps[::2], of_ics, strict=True)}
        recovering, epoch = int(recovering_until or 0), int(reset or 0)
        struck = frozenset(Strike.parse(*s) for s in strikes.items())
        records = {(r.tp, r.key_hash): r for r in (FailingRecord.parse(*of_one) for of_one in failing.items())}
        known = segments, ics, current, handed, assignment, struck, parsed(growth), records
        forbids = not policy_of(policy).of_group.may_share(TOPIC)
        self.states.append(State(nonce, run_id or "", recovering, epoch, of_filter or "", *known, forbids))
        self._sound = self._sound if run_id == "0" else self.state
        if founding and founding != self.founding:
            self._found(founding)
        if recovering <= self.redis_ms():  # else claims may still move its positions
            self._begin_anew(self._deleted & segments.keys())
        if epoch > self.reset:
            self._reset(epoch)

    def lower_bases(self) -> None:
        """Logs were cut: the group owes all records from their ends on, if it has read any.

        A cut below a first position that was the end of the log cannot be found: no member has looked since.
        """
        for tp, base in self.base.items():
            if any(position > base for _, position in self.state.segments.get(tp, ())):
                self.base[tp] = min(base, len(self._kafka.logs[tp]))

    def deleted(self) -> None:
        """An operator has deleted the group.

        A member that slept may bring it back, with the founding that it knows. Then its positions, and the first ones
        of new queries, are where the group begins: nothing proves those of before (operations.md, "delete").
        """
        self._deleted = set(self.base)

    def _begin_anew(self, tps: set[TopicPartition]) -> None:
        """Note the first look at partitions that an operator had deleted.

        What the sink has may come again, and need not: a member that slept longer may still prove it.
        """
        kept = {r for r in self._sink.completed if r.tp in tps}
        for tp in tps:
            self.base[tp] = min(position for _, position in self.state.segments[tp])
            self._sink.reset(self._kafka.logs[tp], self.state.done)
        self._sink.skipped |= kept
        self._deleted -= tps

    def _reset(self, epoch: int) -> None:
        """Note the first look with an operator's reset in force."""
        self.reset = epoch
        for tp, segments in self.state.segments.items():
            self.base[tp] = min(self.base[tp], *(p for _, p in segments))
            self._sink.reset(self._kafka.logs[tp], self.state.done)

    def _found(self, founding: str) -> None:
        """Note the first look at another group: it owes the sink all records from its first positions on."""
        before, self.founding, self.reset = self.founding, founding, 0
        if before:
            self.base = {tp: min(p for _, p in segments) for tp, segments in self.state.segments.items()}
            for log in self._kafka.logs.values():
                self._sink.reset(log, self.state.done)

    def _one_ownership_an_epoch(
        self, owners: Mapping[TopicPartition, Owners], handed: Mapping[TopicPartition, Mapping[int, Holder]]
    ) -> None:
        """An epoch belongs to one member. A cell that left it never returns: a hash, without order an offset."""
        held: dict[str, set[tuple[str, TopicPartition, int]]] = {}
        for tp, of_tp in owners.items():
            for hashes, epoch, member in of_tp:
                held.setdefault(epoch, set()).update((member, tp, h) for h in HASHES if h in hashes)
                self.last_owner |= {(tp, h): epoch for h in HASHES if h in hashes}
        for tp, of_offsets in handed.items():
            for offset, (epoch, member) in of_offsets.items():
                held.setdefault(epoch, set()).add((member, tp, offset))
        for epoch, cells in held.items():
            if strange := cells - self._epochs.setdefault(epoch, cells):
                raise Violation(f"EPOCH: {epoch} has what it had not, or no more: {min(strange)}")
        self._epochs |= held

    def _not_ahead_of_sink(self) -> None:
        for tp in self._kafka.logs:
            base, mirrored = self.base.get(tp, 0), self._mirrored(tp)
            for record in self._kafka.between(tp, base, len(self._kafka.logs[tp])):
                if record in self._sink.completed or record in self._sink.skipped or self._kafka.aged(record):
                    continue
                if self.excused(record):
                    continue
                if record.offset < self.state.position(record) and self.state.reset == self.reset:
                    raise Violation(f"AHEAD: Redis is at {self.state.position(record)}, {record} is not in the sink")
                if self.state.acknowledged(record):
                    raise Violation(f"AHEAD: {record} is acknowledged, and not in the sink")
                if record.offset < mirrored:
                    raise Violation(f"AHEAD: the mirror is at {mirrored}, {record} is not in the sink")

    def _begins_where_it_was(self, tp: TopicPartition, stable: int, reset: int) -> None:
        """A partition that Redis had lost begins where the mirror proves it (rule: recover-by-proof)."""
        mirrored = self._mirrored(tp)
        if not (mirrored and reset == self.reset) or self._kafka.mirror == "denied":
            return
        self.placed_again += 1
        if stable < mirrored:
            raise Violation(f"AGAIN: {tp} begins at {stable}, and the mirror proves {mirrored}")

    def _mirrored(self, tp: TopicPartition) -> int:
        """The mirror's offset at the latest reset epoch; older reset epochs prove nothing (rule: reset-epoch)."""
        offsets = since_reset(of_founding(self._kafka.group_offsets, self.founding), self.reset)
        topics = self._kafka.described()
        mirror, known = mirrored(offsets, topics), extents(offsets, topics)
        ends = self._kafka.ends_of_epochs({tp: known[tp].epoch} if tp in known else {})  # rule: leader-epoch-facts
        return min(mirror.get(tp, 0), ends.get(tp, mirror.get(tp, 0)))

    @property
    def mirrored_everywhere(self) -> bool:
        """Whether the mirror proves a position of every partition, so that Redis may be lost.

        If the mirror is denied, only running queries prove positions, together; else they end, until it is granted.
        """
        offsets = since_reset(of_founding(self._kafka.group_offsets, self.founding), self.reset)
        current = mirrored(offsets, self._kafka.described())
        return is_mirror(offsets) and offsets.keys() == current.keys() == self._kafka.logs.keys()


def _dict(flat: Sequence[str]) -> dict[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _times(flat: Sequence[str]) -> dict[str, float]:
    return {member: float(at) for member, at in _dict(flat).items()}


def _parsed(flat: Sequence[str]) -> Segments:
    return tuple(sorted((HashRange.parse(h), int(p)) for h, p in zip(flat[::2], flat[1::2], strict=True)))


def _ics(tp: TopicPartition, segments: Sequence[str], ics: Sequence[str]) -> tuple[Segment, ...]:
    """The segments with individual commits. Each sound key must be a segment's, with the text of all its ICs."""
    if not ics:
        return ()
    positions, found = (dict(zip(flat[::2], flat[1::2], strict=True)) for flat in (segments, ics))
    text = {str(hashes): " ".join(map(str, done)) for hashes, done in sound_commits_of(found).items()}
    progress = Progress.parse(positions, text)
    if {str(s.hashes): " ".join(map(str, s.ics)) for s in progress.segments if s.ics} != text:
        raise Violation(f"ICS: {tp} has positions {positions} and individual commits {text}")
    return tuple(s for s in progress.segments if s.ics)


def _handed(tp: TopicPartition, flat: Sequence[str], nonce: str | None) -> dict[int, Holder]:
    """The holder of each offset at this nonce."""
    found: dict[int, Holder] = {}
    for text, value in _dict(flat).items():
        epoch, _, member = value.partition(" ")
        offsets = OffsetRange.parse(text)
        if strange := found.keys() & set(range(offsets.start, offsets.until)):
            raise Violation(f"HANDED: two members hold offset {min(strange)} of {tp}: {flat}")
        if epoch.startswith(f"{nonce}."):
            found |= dict.fromkeys(range(offsets.start, offsets.until), (epoch, member))
    return found


def _owners(flat: Sequence[str]) -> Owners:
    texts = ((HashRange.parse(h), *value.partition(" ")) for h, value in zip(flat[::2], flat[1::2], strict=True))
    return tuple(sorted((hashes, epoch, member) for hashes, epoch, _, member in texts))


def _tile(tp: TopicPartition, segments: Segments, owners: Owners) -> None:
    ranges = [hashes for hashes, _ in segments]
    if ranges[0].lo != 0 or ranges[-1].hi != HASH_MAX or any(a.hi + 1 != b.lo for a, b in pairwise(ranges)):
        raise Violation(f"TILING: the segments of {tp} do not tile the hash space: {[*map(str, ranges)]}")
    if any(a.hi >= b.lo for (a, *_), (b, *_) in pairwise(owners)):
        raise Violation(f"OWNERS: two owners of one hash of {tp}: {[(str(h), o) for h, _, o in owners]}")


def _stable(tp: TopicPartition, segments: Segments, stable: str | None) -> None:
    lowest = min(position for _, position in segments)
    if stable != str(lowest):
        raise Violation(f"STABLE: the stable offset of {tp} is {stable}, its lowest position is {lowest}")


def look_script(client: redis.Redis) -> Callable[..., Any]:
    """The script of a look, on a client that decodes replies."""
    return client.register_script(_LOOK)
