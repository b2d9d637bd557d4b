"""What the trunk asks of the cost model, and nothing more: guesses cost time when they are wrong, never a record.

Ends that tasks decide are to replace what is behind this interface.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from coordinator.cost.batch_cost import Ended, LaneId
from coordinator.cost.end_history import EndHistory
from coordinator.cost.quotas import Quota
from coordinator.plan.packing import Task
from coordinator.plan.planning import Cutting, OwnedRanges
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.subscription import TopicPartition
from coordinator.telemetry import SliceCost


@dataclass(frozen=True, slots=True)
class Allowance:
    """How far each lane may read in the next batch."""

    work: OwnedRanges  # under the ceilings of the quotas
    quotas: tuple[Quota, ...]  # of each lane, or of pieces of which all may be read
    cutting: Cutting  # how a plan cuts `work`


class Guesses(Protocol):
    """Costs of lanes; on the main thread of the reader's process, like the rest of the member."""

    history: EndHistory
    """When log ends passed which offsets: so how old is what waits."""

    def grant(
        self,
        work: OwnedRanges,
        ends: Mapping[TopicPartition, int],
        trial: LaneId | None,
        *,
        everything: bool,
        anew: Iterable[LaneId],
    ) -> Allowance:
        """How much of `work` fits the time budget; before a plan."""

    def pack(self, end: StreamOffset, readable: StreamOffset, *, trial: bool) -> tuple[Task, ...]:
        """The tasks of the batch that ends at `end`; the same again for the same batch."""

    def learn(self, offset: StreamOffset, reports: Mapping[Slice, SliceCost]) -> Ended | None:
        """The batch that ends at `offset` is in the sink; None if it was not this process that handed it out."""

    def offsets_of_a_record(self, lane: LaneId) -> int:
        """How many offsets hold about one record of a lane."""
