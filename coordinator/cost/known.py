"""What is known of the cost of lanes, as of now: profiles by partition, in which very many lanes are looked up."""

from functools import lru_cache

from coordinator.cost.batch_cost import LaneId, cell_in
from coordinator.cost.profile import UNKNOWN, Cell, Profile
from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition


class Known:
    """See the module; what is learned comes as new `profiles`."""

    def __init__(self) -> None:
        self.profiles: dict[TopicPartition, Profile] = {}
        self._cells: dict[LaneId, Cell] = {}  # of lanes that were asked for, as of ...
        self._cells_of = self.profiles

    def profile(self, tp: TopicPartition) -> Profile:
        """What is known of a partition."""
        return self.profiles.get(tp, UNKNOWN)

    def cell(self, lane: LaneId) -> Cell:
        """What is known of a lane."""
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
    """The cell of a lane in a partition of which nothing is known; partitions by the thousand are cut alike."""
    return UNKNOWN[0].within(hashes)
