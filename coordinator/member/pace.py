"""How far the next batch may read: log ends, AvailableNow's targets, and the limits that Spark passes."""

from collections.abc import Mapping
from dataclasses import dataclass

from coordinator.clock import Clock
from coordinator.plan.planning import OwnedRanges, anything, backlog, backlog_ready, levels
from coordinator.subscription import Bounds, TopicPartition

IDLE_MS = 250  # between two looks of an idle query


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a batch; None means nothing does."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = 900_000
    everything: bool = False  # Trigger.Once: one batch reads all there is, whatever it costs


class Pace:
    """Remembers the targets of AvailableNow and when the last batch was planned."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._planned_at: int | None = None
        self._nothing: tuple[OwnedRanges, Mapping[TopicPartition, int]] | None = None
        self._nothing_at: int | None = None  # when the last look was that found nothing to read
        self.targets: Mapping[TopicPartition, int] | None = None
        self._of_others: Mapping[TopicPartition, int] = {}

    def ends(self, bounds: Mapping[TopicPartition, Bounds]) -> dict[TopicPartition, int]:
        """Where each partition ends for this run."""
        return {tp: self._end(tp, b.end) for tp, b in bounds.items()}

    def until(
        self, work: OwnedRanges, bounds: Mapping[TopicPartition, Bounds], limits: Limits
    ) -> dict[TopicPartition, int]:
        """How far each partition may be read; 0 everywhere while `minOffsetsPerTrigger` waits for more."""
        ends = self.ends(bounds)
        if not self._ready(work, ends, limits):
            return dict.fromkeys(ends, 0)
        return levels(work, ends, limits.max_offsets)

    def anything(self, work: OwnedRanges, until: Mapping[TopicPartition, int]) -> bool:
        """Whether there is a record to read; an idle query, which may have very many lanes, asks it again and again."""
        if self._nothing is None or self._nothing[0] is not work or self._nothing[1] != until:
            self._nothing = None if anything(work, until) else (work, until)
        self._nothing_at = self._clock.now_ms() if self._nothing else None
        return self._nothing is None

    def adopt(
        self,
        raised: Mapping[TopicPartition, int],
        others: Mapping[TopicPartition, int],
        bounds: Mapping[TopicPartition, Bounds],
    ) -> None:
        """Targets as the group raised them when this member joined, but none that the log cannot reach any more.

        A partition that has appeared since has no target here. Another member may wait for it, and so it is read up to
        the target of the `others`; it is not waited for. So who joined first waits for nothing that others do not read.
        """
        if self.targets is not None:
            wanted, self._of_others = raised or self.targets, others
            self.targets = {tp: min(target, bounds[tp].end) for tp, target in wanted.items() if tp in bounds}

    def planned(self) -> None:
        """A batch was planned now."""
        self._planned_at = self._clock.now_ms()

    def rest(self) -> None:
        """Wait for something new, until a look that found nothing is a little old."""
        if self._nothing_at is not None:
            self._clock.wait(max(0, self._nothing_at + IDLE_MS - self._clock.now_ms()))

    def _end(self, tp: TopicPartition, end: int) -> int:
        return end if self.targets is None else min(end, self.targets.get(tp, self._of_others.get(tp, 0)))

    def _ready(self, work: OwnedRanges, ends: Mapping[TopicPartition, int], limits: Limits) -> bool:
        """AvailableNow never waits for more: nothing more would come."""
        if self.targets is not None or limits.min_offsets is None:
            return True
        since = None if self._planned_at is None else self._clock.now_ms() - self._planned_at
        return backlog_ready(
            backlog(work, ends), min_offsets=limits.min_offsets, since_last_ms=since, max_delay_ms=limits.max_delay_ms
        )
