"""Learns from a finished batch: the density of its lanes, the cost of their records, the next allowance.

Exact where the user's function runs in `read`. Elsewhere only the time of the whole batch is known. Pure.
"""

from dataclasses import replace
from functools import partial

from coordinator.cost.batch_cost import BatchCost, LaneId, Load, cell_in, proven_in
from coordinator.cost.profile import START_RECORDS, UNKNOWN, Cell, Profile, changed, compacted
from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition
from coordinator.telemetry import KeyCost

NEWEST = 0.5
"""Weight of the newest batch in an average."""

FEW = 10.0
"""Least number of records in an average: where records are rare, a batch without any proves little."""

FASTEST_GROWTH = 10.0
"""Growth of a lane's allowance after a batch that took less than a tenth of the budget; else it doubles."""


def learned(
    profiles: dict[TopicPartition, Profile], batch: BatchCost, *, budget_ms: float, concurrency: int, reading_ms: float
) -> dict[TopicPartition, Profile]:
    """The profiles after a batch. To read a record takes `reading_ms`, in every lane.

    While workers start, the time of a function counts only if the function alone took longer than the budget.
    """
    growth = _growth(batch, budget_ms)
    # The first time, all lanes may read the same number of records.
    informative = (x for x in batch.loads if x.cost is not None or growth * x.rows > START_RECORDS * x.of_lanes)
    loads = [lane for load in informative for lane in load.lanes]
    if not loads:
        return profiles
    after = dict(profiles)
    for load in loads:
        tp, hashes = load.lane
        timed = batch.warm or (load.function_ms(concurrency) or 0.0) > budget_ms
        key = load.dear_key if timed else None
        rest = load.without(key) if key else load
        function_ms = rest.function_ms(concurrency) if timed else None
        change = partial(_learned, load=rest, growth=growth, function_ms=function_ms, reading_ms=reading_ms)
        after[tp] = changed(after.get(tp, UNKNOWN), hashes, change)
        if key:
            known = partial(_of_key, key=key, span=load.span, reading_ms=reading_ms)
            after[tp] = changed(after[tp], HashRange(key.key_hash, key.key_hash), known)
    return after | {tp: compacted(after[tp]) for tp in {load.lane[0] for load in loads}}


def _growth(batch: BatchCost, budget_ms: float) -> float:
    """Growth of the allowance after a batch; 1 if the batch started workers and exceeded the budget."""
    if batch.work_ms > budget_ms and not batch.warm:
        return 1.0
    return FASTEST_GROWTH if batch.work_ms < budget_ms / FASTEST_GROWTH else 2.0


def proven(profiles: dict[TopicPartition, Profile], lane: LaneId, record_ms: float) -> dict[TopicPartition, Profile]:
    """The profiles after the cost of a lane's record is proven."""
    tp, hashes = lane
    change = partial(replace, record_ms=record_ms, sure=True)
    return {**profiles, tp: changed(profiles.get(tp, UNKNOWN), hashes, change)}


def cleared(profiles: dict[TopicPartition, Profile], lane: LaneId, rows: float) -> dict[TopicPartition, Profile]:
    """The profiles after a lane read this many records and was not slow; it starts again from there."""
    tp, hashes = lane
    change = partial(replace, record_ms=None, sure=False, allowance=max(START_RECORDS, 2 * rows))
    return {**profiles, tp: changed(profiles.get(tp, UNKNOWN), hashes, change)}


def forgotten(profiles: dict[TopicPartition, Profile], lane: LaneId) -> dict[TopicPartition, Profile]:
    """The profiles with the cost of a lane unknown. Its allowance is that of a new lane; its density stays."""
    tp, hashes = lane
    change = partial(replace, record_ms=None, sure=False, allowance=START_RECORDS)
    return {**profiles, tp: changed(profiles.get(tp, UNKNOWN), hashes, change)}


def reconsidered(
    profiles: dict[TopicPartition, Profile], batch: BatchCost, *, rate_ms: float, healthy_ms: float
) -> dict[TopicPartition, Profile]:
    """The profiles after a new look at proven slow lanes. At `healthy_ms` a record is not slow any more.

    No lane took longer than its batch. If a batch took longer than its known costs, the slowest lane gets the excess.
    """
    known = proven_in(profiles)
    slow = [
        x
        for x in (batch.lanes if known else ())
        if x.lane[0] in known and x.rows >= 1 and cell_in(profiles, x.lane).sure
    ]
    if not slow:
        return profiles
    unexplained = batch.work_ms > 1.2 * batch.expected_ms(profiles, rate_ms)
    slowest = max(slow, key=lambda x: x.rows * _record_ms(profiles, x.lane), default=None)
    after = dict(profiles)
    for load in slow:
        before, seen = _record_ms(profiles, load.lane), batch.work_ms / load.rows
        ms = _smoothed(before, seen) if seen < before or (unexplained and load is slowest) else before
        sure = ms > healthy_ms
        change = partial(replace, record_ms=ms if sure else None, sure=sure)
        after[load.lane[0]] = changed(after[load.lane[0]], load.lane[1], change)
    return after


def _record_ms(profiles: dict[TopicPartition, Profile], lane: LaneId) -> float:
    return cell_in(profiles, lane).record_ms or 0.0


def _learned(cell: Cell, load: Load, growth: float, function_ms: float | None, reading_ms: float) -> Cell:
    if load.cost is not None and load.cost.finished:
        cell = _denser(cell, load.cost.rows, load.span)
    if function_ms is not None and load.cost is not None and load.cost.rows:
        before = cell.record_ms if cell.sure else None
        cell = replace(cell, record_ms=_smoothed(before, reading_ms + function_ms / load.cost.rows), sure=True)
        growth = FASTEST_GROWTH  # the cost itself keeps the budget
    allowance = max(cell.allowance, growth * load.rows)
    return cell if allowance == cell.allowance else replace(cell, allowance=allowance)


def _of_key(cell: Cell, key: KeyCost, span: int, reading_ms: float) -> Cell:
    """The cell of a key that was expensive in a lane with others, so that its own lane starts with the right cost."""
    record_ms = reading_ms + key.ms / key.rows
    return replace(_denser(cell, key.rows, span), record_ms=record_ms, sure=True)


def _denser(cell: Cell, rows: int, span: int) -> Cell:
    """The cell after a batch with this many records in `span` offsets. Older records count less, but `FEW` at least.

    A lane without any may have some in the next batch.
    """
    seen = min(cell.seen, max(float(span), FEW / cell.density))
    floor = max(0.05 * cell.hashes.share, 1 / (2 * (seen + span)))
    return replace(cell, density=max(floor, (seen * cell.density + rows) / (seen + span)), seen=seen + span)


def _smoothed(before: float | None, now: float) -> float:
    return now if before is None else (1 - NEWEST) * before + NEWEST * now
