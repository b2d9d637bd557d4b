"""The coordinator's service: what one member of a group does between two micro-batches (spec 4.2, 7).

    first_positions   before a query's first batch: joins nothing, writes positions where there are none
    next_offset       start is sink-complete: commit it, then plan the next batch within the lease
    authorize         before every batch, first run or replay: what of it is still owned
    leave             frees what is confirmed

The only mutable object, with its parts: `Membership` (who we are), `Evidence` (what we saw of
offsets), `LogView` (what we saw of Kafka), `Holding` (what we own), `Founding` (positions where there are none).
Runs in the stream reader's process, on its main thread; the heartbeat runs on its own and touches
nothing but the lease.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from coordinator import data_loss
from coordinator.assignment_text import fields_of
from coordinator.clock import Clock
from coordinator.errors import CheckpointMismatchError
from coordinator.evidence import Evidence
from coordinator.founding import Founding
from coordinator.holding import Holding
from coordinator.log_view import LogView
from coordinator.membership import Membership
from coordinator.offset_spec import OffsetSpec
from coordinator.ownership import Fact, Facts, Ownership, completed, narrowed
from coordinator.pace import Limits, Pace, anything
from coordinator.planning import Cutting, Pieces, pieces, plan
from coordinator.ports import Log
from coordinator.redis_membership import Joining
from coordinator.redis_store import Acquired, RedisStore
from coordinator.settings import GroupSettings
from coordinator.stream_offset import StreamOffset
from coordinator.subscription import Bounds, Pattern, Subscription, TopicPartition

_log = logging.getLogger(__name__)


class Service:
    """One member's work on one group; see the module."""

    def __init__(
        self,
        settings: GroupSettings,
        subscription: Subscription,
        starting: OffsetSpec,
        cutting: Cutting,
        *,
        store: RedisStore,
        log: Log,
        clock: Clock,
        me: Joining,
    ) -> None:
        self._settings, self._subscription, self._cutting = settings, subscription, cutting
        self._store, self._clock = store, clock
        self._view = LogView(log, subscription, clock)
        self._evidence = Evidence()
        self._founding = Founding(settings, starting, store, log, self._view, self._evidence)
        self._me = me
        self._membership = Membership(
            store,
            clock,
            settings,
            self._say,
            recover=self._founding.recover,
            assert_positions=self._founding.assert_known,
        )
        self._holding = Holding(store, self._membership, self._founding, self._view, settings.assignor)
        self._confirmed: StreamOffset | None = None
        self._pace = Pace(clock)

    # -- what Spark's calls become -------------------------------------------------------------

    def first_positions(self) -> None:
        """Give the group its first positions where it has none (spec 7, Start); idempotent, joins nothing."""
        self._membership.outside(self._founding.first_positions)

    def set_targets(self) -> None:
        """AvailableNow: this run ends where the log ends now."""
        self._pace.targets = {tp: b.end for tp, b in self._view.look().items()}

    def next_offset(self, start: StreamOffset, limits: Limits) -> StreamOffset | None:
        """Commit `start`, then the offset of the next batch; None if there is nothing to do."""
        self._accept(start)
        skipped = self._commit(start)
        self._holding.begin()
        looks = 0
        while True:
            acquired, work, until = self._look(limits)
            if skipped or anything(work, until):
                if not self._holding.fresh:
                    self._holding.forget()
                elif self._membership.lease_left_ms <= 0:
                    self.heartbeat_now()
                elif not self._recreated(acquired.topic_ids):
                    return self._plan(acquired, work, until)
            elif self._pace.targets is not None:
                if self._finished():
                    return None
                self._pace.rest()
            elif looks:
                return None
            else:
                looks += 1
                self._pace.rest()

    def authorize(self, end: StreamOffset) -> StreamOffset:
        """The part of `end` that this member may read (R7); asks once for each offset."""
        self._accept(end)
        self._evidence.arrived(end)
        verdict = self._evidence.authorised(end)
        if verdict is None:
            verdict = self._membership.call(lambda caller: self._store.authorize(caller, end))
            self._evidence.authorise(end, verdict)
        gone = self._recreated(end.topic_ids)
        fail = self._settings.fail_on_data_loss
        readable = data_loss.without(narrowed(end, verdict), gone, fail_on_data_loss=fail)
        if readable != end:
            _log.warning(
                "group %s: part of a batch is owned by others by now and is left to them", self._settings.group
            )
        return readable

    def heartbeat(self) -> None:
        """One heartbeat; called on the heartbeat thread."""
        self._membership.beat(self._store.heartbeat)

    def heartbeat_now(self) -> None:
        """Renew the lease on the main thread, and wait until it is acknowledged."""
        self._membership.call(self._store.heartbeat)

    def leave(self) -> None:
        """Free every range that has no unconfirmed slice, and say goodbye; errors are left to the lease's end."""
        self.heartbeat()  # it alone pushes the group's expiry, and a short run has not had one
        unconfirmed = self._evidence.unconfirmed
        if self._membership.leave({tp: unconfirmed.get(tp, ()) for tp in {*self._view.bounds, *unconfirmed}}):
            self._founding.mirror()

    def check_store(self, check: Callable[[], None]) -> None:
        """Run a check of the Redis server, through its outages."""
        self._membership.outside(check)

    def log_ends(self) -> dict[TopicPartition, int]:
        """The log ends at the last look."""
        return {tp: b.end for tp, b in self._view.bounds.items()}

    def _say(self) -> Joining:
        """What this member says of itself when it joins."""
        fields = {**self._me.fields, **fields_of(frozenset(self._view.topics), self._settings.capacity)}
        return replace(self._me, fields=fields, targets=self._pace.targets or {})

    # -- commit --------------------------------------------------------------------------------

    def _accept(self, offset: StreamOffset) -> None:
        """Refuse another group's or other topics' checkpoint; take the identity it names."""
        if offset.group != self._settings.group:
            raise CheckpointMismatchError(
                f"the checkpoint belongs to group {offset.group!r}, this query to group {self._settings.group!r}",
                "use a new checkpointLocation for another group, or the group of this checkpoint",
            )
        self._view.refresh()
        strange = sorted({tp.topic for tp in offset.lanes} - self._view.topics.keys())
        if strange and isinstance(self._subscription, Pattern):
            if self._settings.fail_on_data_loss:
                raise data_loss.error(data_loss.Deleted(strange[0]))
            _log.warning("group %s: %s", self._settings.group, data_loss.Deleted(strange[0]))
        elif strange:
            raise CheckpointMismatchError(
                f"the checkpoint reads topic {strange[0]!r}, to which this query does not subscribe",
                "use a new checkpointLocation for other topics, or subscribe to that topic too",
            )
        self._membership.identify(offset.member)

    def _commit(self, start: StreamOffset) -> bool:
        """Commit what the sink completed; whether part of `start` was skipped, and must vanish from the next offset."""
        witnessed = self._evidence.returned(start)
        mine = start if witnessed is None else narrowed(start, witnessed)
        if self._confirmed != start and start.member:
            self._commit_facts(mine, completed(mine), witnessed)
            self._confirmed = start
            self._founding.committed()
        self._evidence.confirmed()
        self._founding.mirror_if_due(self._clock.now_ms())
        return mine != start

    def _commit_facts(self, offset: StreamOffset, facts: Facts, witnessed: Ownership | None) -> None:
        refused = self._membership.call(lambda caller: self._store.commit(caller, offset, facts))
        self._holding.forget()
        if refused and witnessed is not None:
            assertions = _within(self._evidence.facts, refused)
            self._membership.outside(lambda: self._founding.claim(offset, assertions))

    # -- plan ----------------------------------------------------------------------------------

    def _look(self, limits: Limits) -> tuple[Acquired, Pieces, dict[TopicPartition, int]]:
        """What is owned, the work there is and how far to read it, after the losses and limits."""
        self._view.refresh()
        acquired, bounds = self._holding.refresh(), self._view.look()
        while not acquired.progress.keys() <= bounds.keys() or self._lossy(acquired, bounds):
            acquired, bounds = self._holding.refresh(), self._view.look()
        self._membership.outside(lambda: self._founding.report_ends(bounds))
        self._pace.adopt(self._membership.targets, self._holding.targets, bounds)
        work = pieces(acquired.ownership, acquired.progress)
        return acquired, work, self._pace.until(work, bounds, limits)

    def _lossy(self, acquired: Acquired, bounds: Mapping[TopicPartition, Bounds]) -> bool:
        """Whether records that were not read are gone and positions were moved for it; an error if that may not be."""
        found = tuple(data_loss.losses(acquired.progress, bounds, acquired.topic_ids, self._view.topics))
        if not found:
            return False
        if self._settings.fail_on_data_loss:
            raise data_loss.error(found[0])
        state = StreamOffset(self._settings.group, reset=acquired.reset, topic_ids=acquired.topic_ids)
        self._evidence.forget()
        self._membership.outside(lambda: self._founding.accept(found, state, bounds))
        self._holding.forget()
        return True

    def _finished(self) -> bool:
        targets = self._pace.targets or {}
        return self._membership.call(lambda caller: self._store.finish(caller, targets))

    def _recreated(self, topic_ids: Mapping[str, str]) -> tuple[data_loss.Recreated, ...]:
        """The topics that have other ids by now: what was seen of their logs before may be of the new ones."""
        self._view.ask()
        return tuple(data_loss.recreated(topic_ids, self._view.topics))

    def _plan(self, acquired: Acquired, work: Pieces, until: Mapping[TopicPartition, int]) -> StreamOffset:
        lanes = plan(work, until, self._cutting)
        end = StreamOffset(self._settings.group, self._membership.member, acquired.reset, acquired.topic_ids, lanes)
        self._evidence.add_unconfirmed(end)
        if end.slices:
            self._pace.planned()
        return end


def _within(facts: Facts, refused: Facts) -> Facts:
    """What may be asserted of the hashes that a commit was refused for."""
    parts = {
        tp: tuple(
            Fact(h, f.position) for f in facts.get(tp, ()) for r in of_tp if (h := f.hashes.intersection(r.hashes))
        )
        for tp, of_tp in refused.items()
    }
    return {tp: of_tp for tp, of_tp in parts.items() if of_tp}
