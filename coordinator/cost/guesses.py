"""The cost model's interface to the member. A wrong guess costs time, never a record.

The member uses the modules behind it through this interface only.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from coordinator.cost.batch_cost import Ended, LaneId
from coordinator.cost.quotas import Quota
from coordinator.plan.packing import Task
from coordinator.plan.planning import Cutting, OwnedRanges
from coordinator.progress.end_history import EndHistory
from coordinator.progress.ends import Ends
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.subscription import TopicPartition
from coordinator.telemetry import SliceCost


@dataclass(frozen=True, slots=True)
class Allowance:
    """The most that each lane may read in the next batch."""

    work: OwnedRanges  # under the ceilings of the quotas
    quotas: tuple[Quota, ...]  # of each lane, or of pieces that may be read to the end
    cutting: Cutting  # how a plan cuts `work`


class Guesses(Protocol):
    """Costs of lanes; on the main thread of the reader's process, like the rest of the member."""

    history: EndHistory
    """When log ends passed which offsets: from this follows the age of unread records."""

    @property
    def beside_ms(self) -> float:
        """The part of the time budget that tasks must leave for the rest of a batch."""

    def grant(
        self,
        work: OwnedRanges,
        ends: Mapping[TopicPartition, int],
        trial: LaneId | None,
        *,
        everything: bool,
        anew: Iterable[LaneId],
        early: bool = False,
    ) -> Allowance:
        """The part of `work` that fits the time budget; called before a plan. `early`: all tasks end by the clock."""

    def pack(self, end: StreamOffset, readable: StreamOffset, *, trial: bool) -> tuple[Task, ...]:
        """The tasks of the batch that ends at `end`; the same again for the same batch."""

    def learn(self, offset: StreamOffset, reports: Mapping[Slice, SliceCost], ends: Ends) -> Ended | None:
        """Learn from the batch that ends at `offset` and is in the sink; None if another process ran it."""

    def offsets_of_a_record(self, lane: LaneId) -> int:
        """The number of offsets that contain about one record of a lane."""
