"""One micro-batch, from its plan to its commit.

    1 planned      latestOffset has returned `end`
    2 authorized   Redis has answered which ranges of it are still owned at their lane epoch: `granted`
    3 readable     without lanes that were struck twice meanwhile: `readable`
    4 under way    Spark has its tasks, since `began_ms`
    5 in the sink  Spark has passed `end` as the start of the next batch
    6 committed    positions have moved; the batch stays until the next one is planned

A batch that an earlier life of the driver planned enters at 2: its `strikes` and `trials` are empty. The seal of an
earlier life names its `ends`.
Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from coordinator.plan.poison import Strike, TrialLanes
from coordinator.progress.ends import Ends, ended, unread
from coordinator.progress.ownership import Ownership, remaining
from coordinator.progress.segments import Progress
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class Batch:
    """See the module."""

    end: StreamOffset
    trials: TrialLanes = field(default_factory=dict)
    strikes: tuple[Strike, ...] = ()  # known when it was planned
    replayed: bool = False  # an earlier life planned it
    granted: Ownership | None = None
    readable: Ownership | None = None
    ends: Ends | None = None  # sealed by an earlier life: its tasks read exactly to these (rule: replay-fixed)
    as_planned: bool = False  # sealed at its planned ends before it is read (rule: seal-as-planned)
    done: Mapping[TopicPartition, Progress] | None = None  # acknowledged offsets that the user wants out of a replay
    unknown: bool = False  # an earlier life may have sealed it, and the seal is lost (rule: unknown-is-beginning)
    began_ms: int | None = None  # of this host's clock
    ended: bool = False  # Spark has asked for the next one

    @property
    def under_way(self) -> bool:
        """Whether Spark has its tasks, and has not requested the next batch."""
        return self.began_ms is not None and not self.ended

    @property
    def may_end_early(self) -> bool:
        """Whether its tasks may end their slices early."""
        return self.may_defer and self.ends is None

    @property
    def may_defer(self) -> bool:
        """Whether its tasks may defer keys: in a replay too (rule: replay-may-defer)."""
        return bool(self.end.early) and not self.unknown

    @property
    def sealed(self) -> bool:
        """Whether it has a seal before its tasks end. Then each of them adds its early ends before it ends."""
        return self.as_planned or self.ends is not None

    def bounded(self, part: StreamOffset) -> StreamOffset:
        """A part of the batch, up to the ends that an earlier life has sealed."""
        if self.unknown:
            return unread(part)
        return part if self.ends is None else ended(part, self.ends)

    def unacknowledged(self, part: StreamOffset) -> StreamOffset:
        """A part of the batch without the offsets that the replay leaves out (rule: replay-acknowledged)."""
        return part if self.done is None else remaining(part, self.done)
