"""The quotas of the next batch and of those before it: which lanes fall behind."""

from coordinator.cost.batch_cost import LaneId
from coordinator.cost.quotas import Quota


class Granted:
    """The quotas that were given last, however often; one batch after the other they become those of the past."""

    def __init__(self) -> None:
        self.quotas: tuple[Quota, ...] = ()
        self._bounds: tuple[int, ...] = ()  # where the lanes begin that are in each of them
        # Both, as they were for the last batch that ended, and for the one before.
        self._read: tuple[tuple[Quota, ...], tuple[int, ...]] = (), ()
        self._before: tuple[tuple[Quota, ...], tuple[int, ...]] = (), ()

    def give(self, quotas: tuple[Quota, ...], bounds: tuple[int, ...] = ()) -> None:
        """Quotas of lanes, or of pieces in which lanes begin at these bounds."""
        self.quotas, self._bounds = quotas, bounds

    def ended(self) -> None:
        """Their batch has ended."""
        self._read, self._before = (self.quotas, self._bounds), self._read

    def falling_behind(self) -> frozenset[LaneId]:
        """The lanes whose lag has not become less since the batch before, and is more than they may read."""
        late = [q for q in self.quotas if q.lag > 2 * q.span]
        before, bounds = self._before if late else ((), ())
        lags = {lane.lane: lane.lag for q in before for lane in q.cut(bounds)}
        return frozenset(q.lane for q in late if lags.get(q.lane, q.lag + 1) <= q.lag)
