"""How far the next batch may read: log ends, AvailableNow's targets, and the limits that Spark passes."""

from collections.abc import Mapping
from dataclasses import dataclass

from coordinator.clock import Clock
from coordinator.planning import Pieces, backlog, backlog_ready, levels
from coordinator.subscription import Bounds, TopicPartition

IDLE_MS = 250  # how long an idle call waits for something new


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a batch; None means nothing does."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = 900_000


class Pace:
    """Remembers the targets of AvailableNow and when the last batch was planned."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._planned_at: int | None = None
        self.targets: Mapping[TopicPartition, int] | None = None

    def until(self, work: Pieces, bounds: Mapping[TopicPartition, Bounds], limits: Limits) -> dict[TopicPartition, int]:
        """How far each partition may be read; 0 everywhere while `minOffsetsPerTrigger` waits for more."""
        ends = {tp: self._end(tp, b.end) for tp, b in bounds.items()}
        if not self._ready(backlog(work, ends), limits):
            return dict.fromkeys(ends, 0)
        return levels(work, ends, limits.max_offsets)

    def adopt(
        self,
        raised: Mapping[TopicPartition, int],
        others: Mapping[TopicPartition, int],
        bounds: Mapping[TopicPartition, Bounds],
    ) -> None:
        """Targets as the group raised them when this member joined, but none that the log cannot reach any more.

        A partition that has appeared since has no target here; another member may wait for it, and so it takes the
        target of the `others`.
        """
        if self.targets is not None:
            wanted = {**others, **(raised or self.targets)}
            self.targets = {tp: min(target, bounds[tp].end) for tp, target in wanted.items() if tp in bounds}

    def planned(self) -> None:
        """A batch was planned now."""
        self._planned_at = self._clock.now_ms()

    def rest(self) -> None:
        """Wait a little for something new."""
        self._clock.wait(IDLE_MS)

    def _end(self, tp: TopicPartition, end: int) -> int:
        return end if self.targets is None else min(end, self.targets.get(tp, 0))

    def _ready(self, waiting: float, limits: Limits) -> bool:
        """AvailableNow never waits for more: nothing more would come."""
        if self.targets is not None:
            return True
        since = None if self._planned_at is None else self._clock.now_ms() - self._planned_at
        return backlog_ready(
            waiting, min_offsets=limits.min_offsets, since_last_ms=since, max_delay_ms=limits.max_delay_ms
        )


def anything(work: Pieces, until: Mapping[TopicPartition, int]) -> bool:
    """Whether there is a record to read."""
    return backlog(work, until) > 0
