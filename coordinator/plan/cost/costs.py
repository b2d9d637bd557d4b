"""The costs of a member's lanes that are known now: a profile for each partition.

A finished batch shows the density of its lanes and, where a task measured it, the cost of their records. That is exact
where the user's function runs in `read`. Elsewhere only the time of the whole batch is known (see `trials`).
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from coordinator.plan.cost.batch_cost import BatchCost, Load
from coordinator.plan.cost.profile import UNKNOWN, Cell, Profile, changed, compacted, mean, one, within
from coordinator.plan.cost.telemetry import KeyCost
from coordinator.progress.slices import LaneId
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition

SLOW = 2.0
"""A lane is slow if its records cost more than this many times the cost of most records of the member."""


class Costs:
    """Holds the profiles; see the module."""

    def __init__(self) -> None:
        self._profiles: dict[TopicPartition, Profile] = {}

    def profile(self, tp: TopicPartition) -> Profile:
        """The known costs of a partition."""
        return self._profiles.get(tp, UNKNOWN)

    def cell(self, lane: LaneId) -> Cell:
        """The known cost of a lane."""
        return one(self.profile(lane[0]), lane[1])

    def mean(self, lane: LaneId) -> tuple[float, float | None]:
        """The known density of a lane, and the cost of its records."""
        return mean(self._profiles.get(lane[0], UNKNOWN), lane[1])

    def cells(self, lane: LaneId, whole: Cell) -> Profile:
        """The known costs of a lane, in as many parts as differ; `whole` is its cell."""
        profile = self.profile(lane[0])
        return within(profile, lane[1]) if len(profile) > 1 else (whole,)

    def slow(self, rate_ms: float | None) -> dict[LaneId, float]:
        """The lanes that are known to be slow, with the cost of a record, if most records cost `rate_ms`."""
        most = SLOW * (rate_ms or 0.0)
        return {
            (tp, cell.hashes): cell.record_ms
            for tp, profile in self._profiles.items()
            for cell in profile
            if cell.record_ms is not None and cell.record_ms > most
        }

    def of_most(self, tps: Collection[TopicPartition]) -> float:
        """The cost of most records of these partitions, where tasks have measured it."""
        cells = [c for tp in tps for c in self.profile(tp)]
        return most_ms([(c.record_ms, c.density) for c in cells if c.record_ms is not None])

    def put(self, lane: LaneId, record_ms: float | None) -> None:
        """The cost of a lane's record is found, or forgotten."""
        if record_ms is not None or lane[0] in self._profiles:
            self._change(lane, partial(replace, record_ms=record_ms))
            self._compact({lane[0]})

    def learn(self, batch: BatchCost, *, concurrency: int, reading_ms: float) -> None:
        """Learn from the reports of a batch. To read a record takes `reading_ms`, in every lane."""
        for load in batch.reported:
            key = load.dear_key
            rest = load.without(key) if key else load
            function_ms = batch.slot_ms(rest, concurrency)
            self._change(load.lane, partial(_learned, load=rest, function_ms=function_ms, reading_ms=reading_ms))
            if key:
                alone = load.lane[0], HashRange(key.key_hash, key.key_hash)
                key = key._replace(ms=batch.key_ms(load, key, concurrency))
                self._change(alone, partial(_of_key, key=key, span=load.span, reading_ms=reading_ms))
        self._compact({load.lane[0] for load in batch.reported})

    def _change(self, lane: LaneId, change: Callable[[Cell], Cell]) -> None:
        self._profiles[lane[0]] = changed(self.profile(lane[0]), lane[1], change)

    def _compact(self, tps: Collection[TopicPartition]) -> None:
        self._profiles |= {tp: compacted(self._profiles[tp]) for tp in tps}


def most_ms(costs: Collection[tuple[float, float]]) -> float:
    """The cost of most records, by costs of a record and the number of such records."""
    half, cost = sum(rows for _, rows in costs) / 2, 0.0
    for record_ms, rows in sorted(costs):
        cost, half = record_ms, half - rows
        if half <= 0:
            break
    return cost


def _learned(cell: Cell, load: Load, function_ms: float, reading_ms: float) -> Cell:
    if load.cost is None or not load.cost.finished or not load.span:
        return cell
    if function_ms and load.rows:
        now, before = reading_ms + function_ms / load.rows, cell.record_ms
        cell = replace(cell, record_ms=now if before is None else (before + now) / 2)
    return cell.denser(load.rows, load.span)


def _of_key(cell: Cell, key: KeyCost, span: int, reading_ms: float) -> Cell:
    """The cell of a key that was expensive in a lane with others, so that its own lane starts with the right cost."""
    return replace(cell.denser(key.rows, span), record_ms=reading_ms + key.ms / key.rows)
