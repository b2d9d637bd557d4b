"""Audits a sink: the group's positions, then the sink, then Kafka, one partition after another.

The order matters. A position is written once its batch is in the sink. So a sink that is read later than the positions
has every record below them, also while members work. Records that Kafka deletes meanwhile are not expected.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np

from coordinator.errors import DataLossError
from coordinator.plan.poison import Strike
from coordinator.progress.failing import FailingRecord
from coordinator.progress.segments import Progress
from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import DEAD_LETTERS, GroupState
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.snapshot import read_group
from coordinator.tools.audit.columns import NO_ROWS, KeyColumns, NumberColumn, SinkColumns, joined
from coordinator.tools.audit.comparison import DeadLetterOffsets, Expectation, compare
from coordinator.tools.audit.dead_letters import dead_letters
from coordinator.tools.audit.report import Audit, PartitionAudit
from coordinator.tools.operations.gaps import progress
from coordinator.tools.operations.reset_plan import ChosenPartitions, partitions_of, recreated
from coordinator.values.log import Log
from coordinator.values.ranges import HashRange, OffsetRange
from coordinator.values.subscription import Bounds, TopicPartition, Topics

FILTERED = "The group has a record filter. The audit does not know it: a record that it drops is shown as lost."
DEAD_UNKNOWN = (
    "Something is lost, and no member names a dead-letter topic: pass one by --dead-letters, if there is one."
)
BEGAN_LATER = (
    "Of {partition}, the sink lacks the records before offset {offset}, and no other. If the group began there, pass "
    "--from-offset {offset}."
)


class Sink(Protocol):
    """The rows of a sink."""

    def columns(self, topic: str) -> Mapping[int, SinkColumns]:
        """The rows of each partition of a topic."""


@dataclass(frozen=True, slots=True)
class KnownPositions:
    """What Redis knows of a group, read before the sink."""

    group: str
    state: GroupState
    failing: tuple[FailingRecord, ...] = ()
    strikes: tuple[Strike, ...] = ()


def positions_of(client: RedisClient, group: str) -> KnownPositions:
    """The positions of a group now. Raises `UnknownGroupError`, `StateFormatError` and `StoreError`s."""
    state, poison = read_group(client, group), OperatorVerbs.of_group(client, group).poison
    return KnownPositions(group, state, tuple(poison.failing()), tuple(poison.strikes()))


@dataclass(frozen=True, slots=True)
class Kafka:
    """Kafka as an audit reads it."""

    arguments: Mapping[str, object]  # of the client
    log: Log
    key_columns: KeyColumns


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """What to audit."""

    topics: ChosenPartitions  # topic -> partitions, None for all that have positions
    start: int = 0  # the first offset in each partition; records before it are not looked at
    dead: str | None = None  # the dead-letter topic; None: the one that members name


def audit(positions: KnownPositions, named: str, sink: Sink, kafka: Kafka, wanted: AuditRequest) -> Audit:
    """The audit of a sink, which `named` describes.

    Raises `LogError`s, also `UnknownTopicError` for partitions without positions, and `SinkError`.
    """
    state = positions.state
    topics = kafka.log.topics(Topics(tuple(sorted(wanted.topics))))
    partitions = partitions_of(wanted.topics, state, topics)
    for name in wanted.topics:
        if recreated(state, topics[name]):
            raise DataLossError(
                f"topic {name!r} was deleted and created again since the group read it",
                "audit the group after its members have read the new topic",
            )
    rows = {name: sink.columns(name) for name in wanted.topics}
    dead = wanted.dead or _named_by_members(state)
    auditor = _Auditor(positions, kafka, wanted.start, _letters(kafka, positions.group, dead))
    bounds = kafka.log.bounds(partitions)
    found = tuple(auditor.partition(tp, bounds[tp], rows[tp.topic].get(tp.partition, NO_ROWS)) for tp in partitions)
    notes = [FILTERED] if state.meta.get("filter") else []
    late = [p for p in found if p.begin is not None and not wanted.start]
    notes += [BEGAN_LATER.format(partition=f"{p.topic}-{p.partition}", offset=p.begin) for p in late]
    notes += [DEAD_UNKNOWN] if dead is None and any(p.lost for p in found if p not in late) else []
    return Audit(positions.group, named, found, tuple(notes))


@dataclass(frozen=True, slots=True)
class _Auditor:
    positions: KnownPositions
    kafka: Kafka
    start: int
    letters: DeadLetterOffsets

    def partition(self, tp: TopicPartition, bounds: Bounds, sink: SinkColumns) -> PartitionAudit:
        """The audit of one partition. Beyond the last stable offset of Kafka nothing is looked at."""
        of = progress(self.positions.state, tp)
        until = max(self.start, min(max(s.reach for s in of.segments), bounds.end))
        first = max(self.start, bounds.beginning)
        read = self.kafka.key_columns(self.kafka.arguments, tp, OffsetRange(first, until)) if first < until else ()
        return compare(self._expected(tp, until, of), joined(list(read)), sink, self.letters)

    def _expected(self, tp: TopicPartition, until: int, of: Progress) -> Expectation:
        failing = [r for r in self.positions.failing if r.tp == tp]
        parked = [HashRange(r.key_hash, r.key_hash) for r in failing if r.parked]
        parked += [s.hashes for s in self.positions.strikes if s.tp == tp and s.parked]
        deferred = [HashRange(r.key_hash, r.key_hash) for r in failing if not r.parked]
        ordered = self.positions.state.meta.get("ordering", "key") != "none"
        return Expectation(tp, self.start, until, of, tuple(parked), tuple(deferred), ordered)


def _named_by_members(state: GroupState) -> str | None:
    found = {fields[DEAD_LETTERS] for fields in state.members.values() if fields.get(DEAD_LETTERS)}
    return found.pop() if len(found) == 1 else None


def _letters(kafka: Kafka, group: str, topic: str | None) -> DeadLetterOffsets:
    @cache
    def found() -> Mapping[TopicPartition, NumberColumn]:
        return dead_letters(kafka.arguments, kafka.log, group, topic) if topic else {}

    return lambda tp: found().get(tp, np.zeros(0, np.int64))
