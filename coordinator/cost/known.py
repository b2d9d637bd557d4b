"""The current known costs of lanes: profiles by partition, with a cache for the lookup of very many lanes."""

from functools import lru_cache

from coordinator.cost.batch_cost import LaneId, cell_in
from coordinator.cost.profile import UNKNOWN, Cell, Profile
from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition


class Known:
    """The profiles, and cells looked up in them. Each batch brings new `profiles`."""

    def __init__(self) -> None:
        self.profiles: dict[TopicPartition, Profile] = {}
        self._cells: dict[LaneId, Cell] = {}  # cells of requested lanes, valid for ...
        self._cells_of = self.profiles

    def profile(self, tp: TopicPartition) -> Profile:
        """The known costs of a partition."""
        return self.profiles.get(tp, UNKNOWN)

    def cell(self, lane: LaneId) -> Cell:
        """The known cost of a lane."""
        if lane[0] not in self.profiles:
            return _unknown(lane[1])
        if self._cells_of is not self.profiles:
            self._cells, self._cells_of = {}, self.profiles
        cell = self._cells.get(lane)
        if cell is None:
            cell = self._cells[lane] = cell_in(self.profiles, lane)
        return cell


@lru_cache(maxsize=16_384)
def _unknown(hashes: HashRange) -> Cell:
    """The cell of a lane in a partition without known costs. Cached, because thousands of partitions are cut alike."""
    return UNKNOWN[0].within(hashes)
