"""Standalone mode (K): given partitions with key ranges, no group, no Redis; positions live in the checkpoint only.

`start` is sink-complete, so its lanes' ends are the positions. Nothing is shared: every lane has
the same epoch, and every batch may be read whole.
"""

import logging
from collections.abc import Iterable, Mapping

from coordinator.assignment.rebalance import union
from coordinator.clock import Clock
from coordinator.cost.quotas import Budget
from coordinator.errors import CheckpointMismatchError
from coordinator.member.lead import Lead
from coordinator.member.log_view import LogView
from coordinator.member.pace import Limits, Pace
from coordinator.member.steering import Steering
from coordinator.offset_spec import OffsetSpec
from coordinator.plan.packing import Task
from coordinator.plan.planning import Cutting, OwnedRanges, plan, with_positions
from coordinator.ports import Log
from coordinator.progress import data_loss
from coordinator.progress.leader_epochs import leader_epochs
from coordinator.progress.ownership import Owned
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.stream_offset import ALONE, StreamOffset
from coordinator.settings import StandaloneSettings
from coordinator.subscription import Assigned, Bounds, TopicPartition
from coordinator.telemetry import SliceCost

_log = logging.getLogger(__name__)
EPOCH = ALONE  # the lane epoch of what cannot be taken away


class Standalone:
    """Plans batches of an `assign` subscription; on the stream reader's main thread."""

    def __init__(
        self,
        assigned: Assigned,
        starting: OffsetSpec,
        cutting: Cutting,
        *,
        log: Log,
        clock: Clock,
        settings: StandaloneSettings,
    ) -> None:
        self._assigned, self._starting, self._cutting, self._log = assigned, starting, cutting, log
        self._view, self._pace = LogView(log, assigned, clock), Pace(clock)
        budget = Budget(settings.batch_budget_ms, cutting.slots)
        self._steering = Steering(clock, cutting, budget, concurrency=settings.concurrency)
        self._lead = Lead(log, settings.max_lead_ms)
        self._fail_on_data_loss = settings.fail_on_data_loss
        self._initial: StreamOffset | None = None

    def initial(self) -> StreamOffset:
        """The resolved starting offsets; resolved once in a process, so that `latest` is one moment."""
        if self._initial is None:
            positions = self._log.resolve(self._starting, self._view.partitions)
            progress = {tp: self._starting_at(tp, position) for tp, position in positions.items()}
            self._initial = self._offset(with_positions(self._owned(progress), progress), dict.fromkeys(progress, 0))
        return self._initial

    def set_targets(self) -> None:
        """AvailableNow: this run ends where the log ends now."""
        self._pace.targets = {tp: b.end for tp, b in self._view.look().items()}

    def next_offset(self, start: StreamOffset, limits: Limits) -> StreamOffset | None:
        """The offset of the next batch after `start`; None if there is nothing to read."""
        self._refuse_others(start)
        self._steering.ended(start)
        progress = {
            tp: Progress(tuple(Segment(x.hashes, x.until) for x in lanes)).coalesced()
            for tp, lanes in start.lanes.items()
        }
        self._pace.rest()
        self._view.refresh()
        bounds = self._view.look()
        self._pace.adopt({}, {}, bounds)
        progress = self._after_losses(progress, bounds, start)
        ends = self._pace.ends(bounds)
        work = self._lead.limit(with_positions(self._owned(progress), progress), ends)
        work = self._steering.bounded(work, ends, everything=limits.everything)
        until = self._pace.until(work, bounds, limits)
        if not self._pace.anything(work, until):
            return None
        if self._recreated(self._topic_ids()):
            return self.next_offset(start, limits)
        self._pace.planned()
        return self._offset(work, until)

    def hear(self, costs: Iterable[SliceCost]) -> None:
        """What executors report of the batch under way."""
        self._steering.inbox.receive(costs)

    def tasks(self, end: StreamOffset) -> tuple[Task, ...]:
        """The tasks of the batch that ends at `end`."""
        return self._steering.began(end, self.authorize(end))

    def authorize(self, end: StreamOffset) -> StreamOffset:
        """All of it, since nobody else can own what is not shared; not topics that were re-created since."""
        self._refuse_others(end)
        return data_loss.without(end, self._recreated(end.topic_ids), fail_on_data_loss=self._fail_on_data_loss)

    def _topic_ids(self) -> dict[str, str]:
        return {name: topic.id for name, topic in self._view.topics.items()}

    def _recreated(self, topic_ids: Mapping[str, str]) -> tuple[data_loss.Recreated, ...]:
        """The topics that have other ids by now: what was seen of their logs before may be of the new ones."""
        self._view.ask()
        return tuple(data_loss.recreated(topic_ids, self._view.topics))

    def log_ends(self) -> dict[TopicPartition, int]:
        """The log ends at the last look."""
        return {tp: b.end for tp, b in self._view.bounds.items()}

    def _starting_at(self, tp: TopicPartition, position: int) -> Progress:
        return Progress(tuple(Segment(h, position) for h in self._assigned.partitions[tp]))

    def _owned(self, progress: Mapping[TopicPartition, Progress]) -> dict[TopicPartition, tuple[Owned, ...]]:
        return {tp: tuple(Owned(h, EPOCH) for h in self._assigned.partitions[tp]) for tp in progress}

    def _offset(self, work: OwnedRanges, until: Mapping[TopicPartition, int]) -> StreamOffset:
        lanes = plan(work, until, self._steering.cutting)
        epochs = leader_epochs(lanes, self._view.bounds)
        return StreamOffset(None, topic_ids=self._topic_ids(), lanes=lanes, leader_epochs=epochs)

    def _refuse_others(self, offset: StreamOffset) -> None:
        ranges = {tp: union(lane.hashes for lane in lanes) for tp, lanes in offset.lanes.items()}
        given = {tp: union(hashes) for tp, hashes in self._assigned.partitions.items() if hashes}
        if offset.group is not None or ranges != given:
            whose = f"group {offset.group!r}" if offset.group is not None else "other partitions or key ranges"
            raise CheckpointMismatchError(
                f"the checkpoint belongs to {whose}, this query reads given partitions without a group",
                "use a new checkpointLocation, or the options that this checkpoint was made with",
            )

    def _after_losses(
        self, progress: dict[TopicPartition, Progress], bounds: Mapping[TopicPartition, Bounds], start: StreamOffset
    ) -> dict[TopicPartition, Progress]:
        moved = dict(progress)
        known = data_loss.extents(start, start.reset, start.topic_ids)
        cut = data_loss.cuts(known, self._view.ends_of_epochs(known))
        for loss in data_loss.losses(progress, bounds, start.topic_ids, self._view.topics, cut):
            if self._fail_on_data_loss:
                raise data_loss.error(loss)
            _log.warning("lost records: %s", loss)
            moved |= data_loss.moved(loss, progress, bounds)
        return moved
