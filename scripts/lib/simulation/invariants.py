"""What must hold of the state in Redis after every step (spec 2, 4.2, 7)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import redis

from coordinator.keys import GroupKeys
from coordinator.mirror import is_mirror
from coordinator.ranges import HASH_MAX, HashRange
from coordinator.subscription import TopicPartition
from simulation.kafka import TOPIC, Record, SimulatedKafka
from simulation.sink import Sink, Violation

_LOOK = (Path(__file__).parent / "look.lua").read_text()

Segments = tuple[tuple[HashRange, int], ...]


@dataclass(frozen=True, slots=True)
class State:
    """The group in Redis, as one script saw it."""

    nonce: str | None = None  # None: Redis holds nothing
    run_id: str = ""
    recovering_until: int = 0
    segments: Mapping[TopicPartition, Segments] = field(default_factory=dict)

    def position(self, record: Record) -> int:
        """The position of the segment that a record is in; 0 where there is none."""
        return next((p for hashes, p in self.segments.get(record.tp, ()) if record.hash in hashes), 0)

    def at(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether every hash of every partition has been read to its end."""
        return all(
            tp in self.segments and all(position >= end for _, position in self.segments[tp])
            for tp, end in ends.items()
        )


class Invariants:
    """Looks at the group and compares it with Kafka and the sink."""

    def __init__(self, look: Callable[..., Any], keys: GroupKeys, kafka: SimulatedKafka, sink: Sink) -> None:
        self._look, self._keys, self._kafka, self._sink = look, keys, kafka, sink
        self._epochs: dict[str, str] = {}
        self._tps: tuple[TopicPartition, ...] = ()
        self._names: list[str] = []
        self._before: object = None
        self.base: dict[TopicPartition, int] = {}  # the group's first position of each partition
        self.state = State()

    def check(self) -> None:
        """Look, and raise `Violation` if something does not hold."""
        tps = tuple(self._kafka.logs)
        if tps != self._tps:
            self._tps, self._names = tps, [self._keys.meta, self._keys.stable(TOPIC)]
            self._names += [k for tp in tps for k in (self._keys.segments(tp), self._keys.owners(tp))]
        found = self._look(keys=self._names)
        if (tps, found) != self._before:
            self._before = tps, found
            self._check(tps, found)
        self._not_ahead_of_sink()

    def _check(self, tps: Sequence[TopicPartition], found: list[Any]) -> None:
        nonce, run_id, recovering_until, _ = found[0]
        stable = dict(zip(found[1][::2], found[1][1::2], strict=True))
        segments = {tp: _parsed(found[2 + 2 * i]) for i, tp in enumerate(tps) if found[2 + 2 * i]}
        for i, tp in enumerate(tps):
            owners = _owners(found[3 + 2 * i])
            if tp in segments:
                self.base.setdefault(tp, min(p for _, p in segments[tp]))
                _tile(tp, segments[tp], owners)
                _stable(tp, segments[tp], stable.get(str(tp.partition)))
            elif owners or str(tp.partition) in stable:
                raise Violation(f"NO SEGMENTS: {tp} has owners or a stable offset and no positions")
            self._one_owner_an_epoch(owners)
        self.state = State(nonce, run_id or "", int(recovering_until or 0), segments)

    def _one_owner_an_epoch(self, owners: Iterable[tuple[HashRange, str]]) -> None:
        for hashes, value in owners:
            epoch, _, member = value.partition(" ")
            if self._epochs.setdefault(epoch, member) != member:
                raise Violation(f"EPOCH: {epoch} of {hashes} was {self._epochs[epoch]}'s and is {member}'s")

    def _not_ahead_of_sink(self) -> None:
        for tp, log in self._kafka.logs.items():
            base, mirrored = self.base.get(tp, 0), self._kafka.group_offsets.get(tp, (0, ""))[0]
            for record in log[base:]:
                if record in self._sink.completed:
                    continue
                if record.offset < self.state.position(record):
                    raise Violation(f"AHEAD: Redis is at {self.state.position(record)}, {record} is not in the sink")
                if record.offset < mirrored:
                    raise Violation(f"AHEAD: the mirror is at {mirrored}, {record} is not in the sink")


def mirrored_everywhere(kafka: SimulatedKafka) -> bool:
    """Whether the mirror proves a position of every partition, so that Redis may be lost."""
    return is_mirror(kafka.group_offsets) and kafka.group_offsets.keys() == kafka.logs.keys()


def _parsed(flat: Sequence[str]) -> Segments:
    return tuple(sorted((HashRange.parse(h), int(p)) for h, p in zip(flat[::2], flat[1::2], strict=True)))


def _owners(flat: Sequence[str]) -> list[tuple[HashRange, str]]:
    return sorted((HashRange.parse(h), value) for h, value in zip(flat[::2], flat[1::2], strict=True))


def _tile(tp: TopicPartition, segments: Segments, owners: Sequence[tuple[HashRange, str]]) -> None:
    ranges = [hashes for hashes, _ in segments]
    if ranges[0].lo != 0 or ranges[-1].hi != HASH_MAX or any(a.hi + 1 != b.lo for a, b in pairwise(ranges)):
        raise Violation(f"TILING: the segments of {tp} do not tile the hash space: {[*map(str, ranges)]}")
    if any(a.hi >= b.lo for (a, _), (b, _) in pairwise(owners)):
        raise Violation(f"OWNERS: two owners of one hash of {tp}: {[(str(h), o) for h, o in owners]}")


def _stable(tp: TopicPartition, segments: Segments, stable: str | None) -> None:
    lowest = min(position for _, position in segments)
    if stable != str(lowest):
        raise Violation(f"STABLE: the stable offset of {tp} is {stable}, its lowest position is {lowest}")


def look_script(client: redis.Redis) -> Callable[..., Any]:
    """The script that looks, on a client that decodes replies."""
    return client.register_script(_LOOK)
