"""Compares the records of one partition with the rows of the sink. Pure; whole columns at a time.

every offset of log or sink, ascending      100   101   102   103   104
in Kafka                                      x     x           x     x
done                                          x     x           x
rows in the sink                              1     2     1     0     1
                                             ok   rep.  gone  lost  ahead
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from coordinator.progress.segments import Progress
from coordinator.tools.audit.columns import UNKNOWN, LogColumns, MaskColumn, NumberColumn, SinkColumns
from coordinator.tools.audit.expected import done
from coordinator.tools.audit.order import disorder
from coordinator.tools.audit.report import DISORDER, LOST, MOST_NAMED, REPEATED, Fault, PartitionAudit
from coordinator.tools.fields import Inclusive
from coordinator.values.ranges import HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

NO_BATCHES = "the sink names no batches"
NO_ORDER = "the group has no order"

DeadLetterOffsets = Callable[[TopicPartition], NumberColumn]
"""The offsets of a partition that are dead letters of the group. Asked only if something is missing."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the group knows of a partition."""

    tp: TopicPartition
    start: int  # the first offset of the audit
    until: int  # the furthest position, or Kafka's last stable offset if that is lower
    progress: Progress
    parked: tuple[HashRange, ...] = ()
    deferred: tuple[HashRange, ...] = ()
    ordered: bool = True


class _Offsets:
    """Every offset of log or sink, ascending, and its rows. `counts` are rows of each offset."""

    def __init__(self, log: LogColumns, sink: SinkColumns) -> None:
        at = _places(log.offsets, sink.offsets)
        strange = np.unique(sink.offsets[at == UNKNOWN])
        self.log, self.in_kafka = log, np.ones(len(log.offsets), np.bool_)
        if len(strange):
            self.log, self.in_kafka = _with(log, strange)
            at = _places(self.log.offsets, sink.offsets)
        self.sink, self.at = sink, at
        self.counts = np.bincount(at, minlength=len(self.log.offsets))
        self.first = np.full(len(self.log.offsets), UNKNOWN, np.int64)  # the first row of each offset
        self.first[at[::-1]] = np.arange(len(at) - 1, -1, -1)


def compare(wanted: Expectation, log: LogColumns, sink: SinkColumns, dead_letters: DeadLetterOffsets) -> PartitionAudit:
    """The audit of one partition. `log` has no offsets outside those of the audit; `sink` may have."""
    beyond = int((sink.offsets >= wanted.until).sum())
    sink = _between(sink, wanted.start, wanted.until)
    of = _Offsets(log, sink)
    done_there = done(wanted.progress, of.log) & of.in_kafka
    missing = done_there & (of.counts == 0)
    dead = np.zeros(len(missing), np.bool_)
    if missing.any():
        dead = missing & np.isin(of.log.offsets, dead_letters(wanted.tp))
    lost, repeated = np.flatnonzero(missing & ~dead), np.flatnonzero(of.counts > 1)
    waiting = of.in_kafka & ~done_there
    ahead = waiting & (of.counts > 0)
    disordered, out_of_order = _out_of_order(of) if wanted.ordered else ([], 0)
    return PartitionAudit(
        topic=wanted.tp.topic,
        partition=wanted.tp.partition,
        start=wanted.start,
        stable=wanted.progress.stable,
        until=wanted.until,
        records=int(done_there.sum()),
        rows=len(sink),
        lost=len(lost),
        repeated=len(repeated),
        out_of_order=out_of_order,
        dead_lettered=int(dead.sum()),
        waiting=int(waiting.sum()),
        parked=int(_within(of.log.hashes[waiting], wanted.parked).sum()),
        deferred=int(_within(of.log.hashes[waiting], wanted.deferred).sum()),
        ahead=int(of.counts[ahead].sum()) + beyond,
        gone=int(of.counts[~of.in_kafka].sum()),
        unordered=_unordered(wanted, sink),
        begin=_begin(of, lost),
        faults=(*_lost(of, lost), *_repeated(of, repeated), *disordered),
    )


def _between(sink: SinkColumns, start: int, until: int) -> SinkColumns:
    inside = (start <= sink.offsets) & (sink.offsets < until)
    if inside.all():
        return sink
    return replace(sink, offsets=sink.offsets[inside], batches=sink.batches[inside], files=sink.files[inside])


def _unordered(wanted: Expectation, sink: SinkColumns) -> str:
    if not wanted.ordered:
        return NO_ORDER
    return "" if all(sink.labels) else NO_BATCHES


def _places(offsets: NumberColumn, wanted: NumberColumn) -> NumberColumn:
    """The place of each wanted offset in ascending `offsets`; UNKNOWN where they lack it."""
    if not len(offsets):
        return np.full(len(wanted), UNKNOWN, np.int64)
    if int(offsets[-1]) - int(offsets[0]) == len(offsets) - 1:  # without holes
        at = wanted - offsets[0]
        return np.where((at >= 0) & (at < len(offsets)), at, UNKNOWN)
    at = np.searchsorted(offsets, wanted)
    at[at == len(offsets)] = 0
    at[offsets[at] != wanted] = UNKNOWN
    return at


def _with(log: LogColumns, strange: NumberColumn) -> tuple[LogColumns, MaskColumn]:
    """The log with offsets that only the sink has, as records without a key; and which ones are in Kafka."""
    offsets = np.concatenate([log.offsets, strange])
    order = np.argsort(offsets, kind="stable")
    hashes = np.concatenate([log.hashes, np.zeros_like(strange)])[order]
    keyed = np.concatenate([log.keyed, np.zeros(len(strange), np.bool_)])[order]
    return LogColumns(offsets[order], hashes, keyed), order < len(log.offsets)


def _within(hashes: NumberColumn, ranges: tuple[HashRange, ...]) -> MaskColumn:
    """Whether each hash is in one of the ranges, which may overlap."""
    if not ranges:
        return np.zeros(len(hashes), np.bool_)
    los, his = np.array(sorted(ranges), np.int64).T
    at = np.searchsorted(los, hashes, "right") - 1
    inside: MaskColumn = (at >= 0) & (hashes <= np.maximum.accumulate(his)[at])
    return inside


def _lost(of: _Offsets, lost: NumberColumn) -> list[Fault]:
    """Lost records; neighbours in the log are one fault."""
    if not len(lost):
        return []
    before, after = _neighbours(of)
    starts = np.flatnonzero(np.diff(lost) > 1) + 1
    end = starts[MOST_NAMED - 1] if len(starts) >= MOST_NAMED else len(lost)
    runs = np.split(lost[:end], starts[: MOST_NAMED - 1])
    return [_lost_run(of, run, int(before[run[0]]), int(after[run[0]])) for run in runs]


def _begin(of: _Offsets, lost: NumberColumn) -> int | None:
    """The first offset of the sink, if it lacks the first records of the log, and no others."""
    if not len(lost) or not len(of.sink) or int(lost[-1]) != len(lost) - 1:
        return None
    return int(of.log.offsets[lost[-1]]) + 1


def _lost_run(of: _Offsets, run: NumberColumn, before: int, after: int) -> Fault:
    offsets = of.log.offsets
    names = ("before", before), ("after", after)
    near = [(word, of.sink.label(int(of.first[at])), int(offsets[at])) for word, at in names if at != UNKNOWN]
    why = "of its key, " + ", ".join(f"the record {word} it, {at}, is in batch {label}" for word, label, at in near)
    batches = tuple(dict.fromkeys(label for _, label, _ in near))
    lost = OffsetRange(int(offsets[run[0]]), int(offsets[run[-1]]) + 1)
    if not near:
        why = "the sink has no record of its key" if of.log.keyed[run[0]] else "it has no key"
    return Fault(LOST, Inclusive.of(lost), batches, why)


def _neighbours(of: _Offsets) -> tuple[NumberColumn, NumberColumn]:
    """For each offset, the nearest ones before and after it with its key hash that have a row."""
    by_hash = np.argsort(of.log.hashes, kind="stable")
    hashes, there = of.log.hashes[by_hash], (of.counts[by_hash] > 0) & of.in_kafka[by_hash]
    places, end = np.arange(len(by_hash)), len(by_hash)
    last = np.maximum.accumulate(np.where(there, places, UNKNOWN))
    following = np.minimum.accumulate(np.where(there, places, end)[::-1])[::-1]
    found = []
    for near, known in ((last, last != UNKNOWN), (following, following != end)):
        near[~known] = 0
        same = known & (hashes[near] == hashes)
        of_offset = np.full(end, UNKNOWN, np.int64)
        of_offset[by_hash[same]] = by_hash[near[same]]
        found.append(of_offset)
    return found[0], found[1]


def _repeated(of: _Offsets, repeated: NumberColumn) -> list[Fault]:
    named = repeated[:MOST_NAMED]
    rows = np.flatnonzero(np.isin(of.at, named))
    batches: dict[int, list[str]] = {}
    for row in rows.tolist():
        batches.setdefault(int(of.at[row]), []).append(of.sink.label(row))
    return [_repeat(int(of.log.offsets[at]), tuple(batches[at])) for at in named.tolist()]


def _repeat(offset: int, batches: tuple[str, ...]) -> Fault:
    return Fault(REPEATED, Inclusive(offset, offset), tuple(dict.fromkeys(batches)), f"{len(batches)} rows")


def _out_of_order(of: _Offsets) -> tuple[list[Fault], int]:
    rows = np.flatnonzero((of.first[of.at] == np.arange(len(of.at))) & of.log.keyed[of.at])
    ranks = of.at[rows]
    found = disorder(of.sink, rows, of.log.hashes[ranks], ranks)
    named = zip(found.rows[:MOST_NAMED].tolist(), found.before[:MOST_NAMED].tolist(), strict=True)
    return [_late(of.sink, row, before) for row, before in named], len(found.rows)


def _late(sink: SinkColumns, row: int, before: int) -> Fault:
    if before == UNKNOWN:
        why = "another task of the batch has records of its key"
    else:
        why = f"after {sink.offsets[before]} of its key, in batch {sink.label(before)}"
    at = int(sink.offsets[row])
    return Fault(DISORDER, Inclusive(at, at), (sink.label(row),), why)
