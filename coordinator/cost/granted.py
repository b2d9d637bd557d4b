"""The quotas of the next batch and of the batches before it, to detect lanes that fall behind."""

from coordinator.cost.batch_cost import LaneId
from coordinator.cost.quotas import Quota


class Granted:
    """The quotas that were set last, however often. At the end of their batch they become those of the past."""

    def __init__(self) -> None:
        self.quotas: tuple[Quota, ...] = ()
        self._bounds: tuple[int, ...] = ()  # where the lanes in each quota begin
        # Both, as they were for the last batch that ended, and for the batch before it.
        self._read: tuple[tuple[Quota, ...], tuple[int, ...]] = (), ()
        self._before: tuple[tuple[Quota, ...], tuple[int, ...]] = (), ()

    def set(self, quotas: tuple[Quota, ...], bounds: tuple[int, ...] = ()) -> None:
        """Set the quotas of lanes, or of pieces in which lanes begin at these bounds."""
        self.quotas, self._bounds = quotas, bounds

    def ended(self) -> None:
        """End the batch of these quotas."""
        self._read, self._before = (self.quotas, self._bounds), self._read

    def falling_behind(self) -> frozenset[LaneId]:
        """The lanes whose lag is no smaller than in the batch before, and larger than their quota."""
        late = [q for q in self.quotas if q.lag > 2 * q.span]
        before, bounds = self._before if late else ((), ())
        lags = {lane.lane: lane.lag for q in before for lane in q.cut(bounds)}
        return frozenset(q.lane for q in late if lags.get(q.lane, q.lag + 1) <= q.lag)
