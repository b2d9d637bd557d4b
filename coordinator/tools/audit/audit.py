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
from coordinator.kafka.whole_log import records, stretches_of
from coordinator.progress.segments import Progress
from coordinator.tools.audit.columns import NO_ROWS, KeyColumns, NumberColumn, SinkColumns, joined
from coordinator.tools.audit.comparison import DeadLetterOffsets, Expectation, compare
from coordinator.tools.audit.report import Audit, PartitionAudit
from coordinator.tools.operations.gaps import progress
from coordinator.tools.operations.group_look import GroupLook
from coordinator.tools.operations.reset_plan import ChosenPartitions, partitions_of, recreated
from coordinator.values.dead_letter import DeadLetter
from coordinator.values.log import Log
from coordinator.values.ranges import OffsetRange
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


def audit(positions: GroupLook, named: str, sink: Sink, kafka: Kafka, wanted: AuditRequest) -> Audit:
    """The audit of a sink, which `named` describes; `positions` were read before the sink.

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
    named_topics = state.dead_letter_topics
    dead = wanted.dead or (named_topics[0] if len(named_topics) == 1 else None)
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
    positions: GroupLook
    kafka: Kafka
    start: int
    letters: DeadLetterOffsets

    def partition(self, tp: TopicPartition, bounds: Bounds, sink: SinkColumns) -> PartitionAudit:
        """The audit of one partition. Beyond the last stable offset of Kafka nothing is looked at."""
        of = progress(self.positions.state, tp)
        until = max(self.start, min(of.furthest, bounds.end))
        first = max(self.start, bounds.beginning)
        read = self.kafka.key_columns(self.kafka.arguments, tp, OffsetRange(first, until)) if first < until else ()
        return compare(self._expected(tp, until, of), joined(list(read)), sink, self.letters)

    def _expected(self, tp: TopicPartition, until: int, of: Progress) -> Expectation:
        failing = [r for r in self.positions.failing if r.tp == tp]
        parked = [r.hashes for r in failing if r.parked]
        parked += [s.hashes for s in self.positions.strikes if s.tp == tp and s.parked]
        deferred = [r.hashes for r in failing if not r.parked]
        ordered = self.positions.state.ordering != "none"
        return Expectation(tp, self.start, until, of, tuple(parked), tuple(deferred), ordered)


def _letters(kafka: Kafka, group: str, topic: str | None) -> DeadLetterOffsets:
    @cache
    def found() -> Mapping[TopicPartition, NumberColumn]:
        return _dead_letters(kafka, group, topic) if topic else {}

    return lambda tp: found().get(tp, np.zeros(0, np.int64))


def _dead_letters(kafka: Kafka, group: str, topic: str) -> Mapping[TopicPartition, NumberColumn]:
    """The offsets of the dead letters of a group, by partition of their source. Reads the whole dead-letter topic."""
    partitions = kafka.log.topics(Topics((topic,)))[topic].partitions
    bounds = kafka.log.bounds(TopicPartition(topic, number) for number in partitions)
    found: dict[TopicPartition, list[int]] = {}
    for record in records(kafka.arguments, stretches_of(bounds)):
        letter = DeadLetter.parse(record.key, record.value, record.headers)
        if letter and letter.group == group:
            found.setdefault(letter.record.tp, []).append(letter.record.offset)
    return {tp: np.array(offsets, np.int64) for tp, offsets in found.items()}
