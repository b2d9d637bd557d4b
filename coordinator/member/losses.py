"""What a member can no longer read: found at each look, refused with a named error or accepted (spec 7).

Of a log that was cut and has grown again nothing is to be seen but by leader epochs. How far it reached under an older
one is known from the batch that the sink completed last, whatever has moved since; from Redis, for those that read
before us; from the mirror, where Redis was lost. Part of the service, on its thread.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace

from coordinator.errors import CheckpointMismatchError
from coordinator.member.evidence import Evidence
from coordinator.member.founding import Founding
from coordinator.member.holding import Holding
from coordinator.member.log_view import LogView
from coordinator.member.membership import Membership
from coordinator.progress import data_loss
from coordinator.progress.data_loss import Beyond, Cut
from coordinator.progress.leader_epochs import Extent, Extents, leader_epochs, parsed
from coordinator.progress.ownership import Facts
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.store import Acquired, RedisStore
from coordinator.settings import GroupSettings
from coordinator.subscription import Bounds, TopicPartition

_log = logging.getLogger(__name__)


class Losses:
    """Looks for records that are gone; see the module."""

    def __init__(
        self,
        settings: GroupSettings,
        store: RedisStore,
        membership: Membership,
        founding: Founding,
        view: LogView,
        evidence: Evidence,
        holding: Holding,
    ) -> None:
        self._settings, self._store, self._membership = settings, store, membership
        self._founding, self._view, self._evidence, self._holding = founding, view, evidence, holding
        self._completed = self._within = StreamOffset(None)
        self._checked: Mapping[TopicPartition, tuple[str, int]] = {}  # what is owned: nonce and leader epoch

    def completed(self, offset: StreamOffset, refused: Facts) -> None:
        """A batch is in the sink. What was refused may long be another's, and a loss in it dealt with."""
        if not refused:
            self._completed = offset
            return
        fenced = {tp: {fact.epoch for fact in of_tp} for tp, of_tp in refused.items()}
        lanes = {tp: tuple(x for x in of_tp if x.epoch not in fenced.get(tp, ())) for tp, of_tp in offset.lanes.items()}
        self._completed = replace(offset, lanes=lanes)

    def refuse_beyond(self, offset: StreamOffset) -> None:
        """`DataLossError` for an offset that reaches beyond a log, before any of it is used, if that may not be."""
        if self._settings.fail_on_data_loss:
            self.within_logs(offset)

    def within_logs(self, offset: StreamOffset) -> StreamOffset:
        """The offset without partitions whose log ends before it: what a checkpoint says of them is not so (any more).

        Asks Kafka only where the last look at the logs does not show that they reach so far.
        """
        if offset is self._within:
            return offset
        beyond = self._beyond(offset)
        if not beyond:
            self._within = offset
            return offset
        if self._settings.fail_on_data_loss:
            raise data_loss.error(next(iter(beyond.values())))
        for loss in beyond.values():
            _log.warning("group %s: %s; it is not committed", self._settings.group, loss)
        self._evidence.forget()
        return replace(offset, lanes={tp: lanes for tp, lanes in offset.lanes.items() if tp not in beyond})

    def _beyond(self, offset: StreamOffset) -> dict[TopicPartition, Beyond]:
        topics = self._view.topics
        far = {
            tp: until
            for tp, until in data_loss.further(offset, self._view.bounds).items()
            if tp.topic in topics and offset.topic_ids.get(tp.topic) == topics[tp.topic].id  # else it was re-created
        }
        if not far or offset.reset < self._membership.outside(self._store.reset_epoch):
            return {}  # an operator has moved positions since: nothing of this offset is used
        self._view.ask()  # a topic may have grown since
        known = frozenset(self._view.partitions)
        if (strange := sorted(far.keys() - known)) and not self._view.partitions_are_given:
            raise CheckpointMismatchError(
                f"the checkpoint reads {strange[0]}, a partition that its topic does not have",
                "use a new checkpointLocation and an output of its own; the group's positions are in Redis and stay",
            )
        wanted = [tp for tp in far if tp in known]
        ends = self._view.high_watermarks(wanted) if wanted else {}
        return {tp: Beyond(tp, far[tp], ends[tp]) for tp in wanted if far[tp] > ends[tp]}

    def met(self, acquired: Acquired, bounds: Mapping[TopicPartition, Bounds]) -> bool:
        """Whether records are gone and positions were moved for it; `DataLossError` if that may not be.

        `bounds` were seen after what is `acquired`.
        """
        topics, cut = self._view.topics, self._cut(acquired, bounds)
        found = tuple(data_loss.losses(acquired.progress, bounds, acquired.topic_ids, topics, cut))
        if found and self._settings.fail_on_data_loss:
            raise data_loss.error(found[0])
        self._settle(acquired, bounds, {loss.tp for loss in cut.values()})
        if not found:
            return False
        state = StreamOffset(self._settings.group, reset=acquired.reset, topic_ids=acquired.topic_ids)
        self._evidence.forget()
        self._membership.outside(lambda: self._founding.accept(found, state, bounds))
        self._holding.forget()
        return True

    def _settle(self, acquired: Acquired, bounds: Mapping[TopicPartition, Bounds], gone: set[TopicPartition]) -> None:
        """Nothing that was known of these leader epochs is asked about again."""
        nonce = self._membership.joined
        self._checked = {tp: (nonce, epoch) for tp, epoch in leader_epochs(_owned(acquired), bounds).items()}
        if gone:
            lanes = {tp: lanes for tp, lanes in self._completed.lanes.items() if tp not in gone}
            self._completed = replace(self._completed, lanes=lanes)

    def _cut(self, acquired: Acquired, bounds: Mapping[TopicPartition, Bounds]) -> dict[TopicPartition, Cut]:
        own = data_loss.extents(self._completed, acquired.reset, acquired.topic_ids)
        return self._cuts(own) | self._cuts(self._known(acquired, bounds))

    def _cuts(self, extents: Extents) -> dict[TopicPartition, Cut]:
        return data_loss.cuts(extents, self._view.ends_of_epochs(extents))

    def _known(self, acquired: Acquired, bounds: Mapping[TopicPartition, Bounds]) -> dict[TopicPartition, Extent]:
        """How far logs reached under older leader epochs, as far as the group has positions there.

        Asked for where a leader epoch is new to us, or what we own.
        """
        nonce = self._membership.joined
        new = {
            tp: epoch
            for tp, epoch in leader_epochs(_owned(acquired), bounds).items()
            if self._checked.get(tp) != (nonce, epoch)
        }
        if not new:
            return {}
        texts = self._membership.outside(lambda: self._store.extents(sorted({tp.topic for tp in new})))
        known = {**self._founding.extents, **parsed(texts, acquired.reset, acquired.topic_ids)}
        older = {tp: known[tp] for tp, epoch in new.items() if tp in known and known[tp].epoch < epoch}
        if not older:
            return {}
        positions = self._membership.outside(lambda: self._store.positions(older))
        return {
            tp: replace(x, end=min(x.end, max(position for _, position in positions[tp])))
            for tp, x in older.items()
            if tp in positions
        }


def _owned(acquired: Acquired) -> tuple[TopicPartition, ...]:
    return tuple(tp for tp, p in acquired.progress.items() if p.segments)
