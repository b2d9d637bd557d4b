"""Learns from a finished batch: the density of its lanes and, where a task measured it, the cost of their records.

Exact where the user's function runs in `read`. Elsewhere only the time of the whole batch is known. Pure.
"""

from dataclasses import replace
from functools import partial

from coordinator.cost.batch_cost import BatchCost, LaneId, Load
from coordinator.cost.profile import UNKNOWN, Cell, Profile, changed, compacted
from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition
from coordinator.telemetry import KeyCost

FEW = 10.0
"""Least number of records in an average: where records are rare, a batch without any proves little."""

Profiles = dict[TopicPartition, Profile]


def learned(profiles: Profiles, batch: BatchCost, *, concurrency: int, reading_ms: float) -> Profiles:
    """The profiles after a batch. To read a record takes `reading_ms`, in every lane."""
    after = dict(profiles)
    for load in batch.reported:
        tp, hashes = load.lane
        key = load.dear_key
        rest = load.without(key) if key else load
        change = partial(_learned, load=rest, function_ms=rest.function_ms(concurrency), reading_ms=reading_ms)
        after[tp] = changed(after.get(tp, UNKNOWN), hashes, change)
        if key:
            of_key = partial(_of_key, key=key, span=load.span, reading_ms=reading_ms)
            after[tp] = changed(after[tp], HashRange(key.key_hash, key.key_hash), of_key)
    return after | {tp: compacted(after[tp]) for tp in {load.lane[0] for load in batch.reported}}


def costing(profiles: Profiles, lane: LaneId, record_ms: float | None) -> Profiles:
    """The profiles after the cost of a lane's record is found, or forgotten."""
    tp, hashes = lane
    return {
        **profiles,
        tp: compacted(changed(profiles.get(tp, UNKNOWN), hashes, partial(replace, record_ms=record_ms))),
    }


def _learned(cell: Cell, load: Load, function_ms: float | None, reading_ms: float) -> Cell:
    if load.cost is None or not load.cost.finished or not load.span:
        return cell
    if function_ms is not None and load.cost.rows:
        now, before = reading_ms + function_ms / load.cost.rows, cell.record_ms
        cell = replace(cell, record_ms=now if before is None else (before + now) / 2)
    return _denser(cell, load.cost.rows, load.span)


def _of_key(cell: Cell, key: KeyCost, span: int, reading_ms: float) -> Cell:
    """The cell of a key that was expensive in a lane with others, so that its own lane starts with the right cost."""
    return replace(_denser(cell, key.rows, span), record_ms=reading_ms + key.ms / key.rows)


def _denser(cell: Cell, rows: int, span: int) -> Cell:
    """The cell after a batch with this many records in `span` offsets. Older records count less, but `FEW` at least.

    A lane without any may have some in the next batch.
    """
    seen = min(cell.seen, max(float(span), FEW / cell.density))
    floor = max(0.05 * cell.hashes.share, 1 / (2 * (seen + span)))
    return replace(cell, density=max(floor, (seen * cell.density + rows) / (seen + span)), seen=seen + span)
