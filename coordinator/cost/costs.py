"""The costs of a member's lanes that are known now: a profile for each partition."""

from collections.abc import Collection

from coordinator.cost.batch_cost import BatchCost, LaneId
from coordinator.cost.learning import Profiles, costing, learned
from coordinator.cost.profile import UNKNOWN, Cell, Profile, one, within
from coordinator.subscription import TopicPartition

SLOW = 2.0
"""A lane is slow if its records cost more than this many times the cost of most records of the member."""


class Costs:
    """Holds the profiles; see the module."""

    def __init__(self) -> None:
        self._profiles: Profiles = {}

    def profile(self, tp: TopicPartition) -> Profile:
        """The known costs of a partition."""
        return self._profiles.get(tp, UNKNOWN)

    def cell(self, lane: LaneId) -> Cell:
        """The known cost of a lane."""
        return one(self.profile(lane[0]), lane[1])

    def cells(self, lane: LaneId) -> Profile:
        """The known costs of a lane, in as many parts as differ."""
        profile = self.profile(lane[0])
        return within(profile, lane[1]) if len(profile) > 1 else (profile[0].within(lane[1]),)

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
            self._profiles = costing(self._profiles, lane, record_ms)

    def learn(self, batch: BatchCost, *, concurrency: int, reading_ms: float) -> None:
        """Learn from the reports of a batch."""
        self._profiles = learned(self._profiles, batch, concurrency=concurrency, reading_ms=reading_ms)


def most_ms(costs: Collection[tuple[float, float]]) -> float:
    """The cost of most records, by costs of a record and the number of such records."""
    half, cost = sum(rows for _, rows in costs) / 2, 0.0
    for record_ms, rows in sorted(costs):
        cost, half = record_ms, half - rows
        if half <= 0:
            break
    return cost
