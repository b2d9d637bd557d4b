"""The coordinator's service: what one member of a group does between two micro-batches (spec 4.2, 7).

    first_positions   before a query's first batch: joins nothing, writes positions where there are none
    next_offset       start is sink-complete: commit it, then plan the next batch within the lease
    authorize         before every batch, first run or replay: what of it is still owned
    tasks             the same, packed into tasks
    leave             frees what is confirmed

The only mutable object, with its parts: `Membership` (who we are), `Evidence` (what we saw of
offsets), `LogView` (what we saw of Kafka), `Holding` (what we own), `Founding` (positions where there are none),
`Reach` (how far we may read it), `Losses` (what can no longer be read), `Committing` (what the sink has completed),
`Reporting` (what we tell of our lanes).
Runs in the stream reader's process, on its main thread. The heartbeat thread calls `heartbeat` and `hear` only. It
shares three things with the main thread, each behind a lock: the lease and the last word of Redis (`Membership`), and
the `Inbox` of the batch under way. `Quarantine.tell` has state of its own, which no other method touches.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import is_

from coordinator.assignment.assignment_text import fields_of
from coordinator.assignment.policies import refuse_demand
from coordinator.assignment.protocols import Protocol
from coordinator.clock import Clock
from coordinator.errors import CheckpointMismatchError
from coordinator.member.committing import Committing
from coordinator.member.evidence import Evidence
from coordinator.member.founding import Founding
from coordinator.member.holding import Holding
from coordinator.member.leading import Leading
from coordinator.member.log_view import LogView
from coordinator.member.losses import Losses
from coordinator.member.membership import Membership
from coordinator.member.pace import Limits, Pace
from coordinator.member.reach import Reach
from coordinator.member.reporting import Reporting
from coordinator.offset_spec import OffsetSpec
from coordinator.plan.packing import Task
from coordinator.plan.planning import Cutting, OwnedRanges, plan
from coordinator.ports import Log
from coordinator.progress import data_loss
from coordinator.progress.leader_epochs import leader_epochs
from coordinator.progress.ownership import narrowed
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.membership import Joining
from coordinator.redis.store import Acquired, RedisStore
from coordinator.reports.lane_lines import LanesTold
from coordinator.settings import GroupSettings
from coordinator.subscription import Bounds, Pattern, Subscription, TopicPartition
from coordinator.telemetry import SliceCost

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
        leading = Leading(store, self._membership, settings.assignors)
        self._holding = Holding(store, self._membership, self._founding, self._view, leading, settings)
        self._losses = Losses(
            settings, store, self._membership, self._founding, self._view, self._evidence, self._holding
        )
        self._reach = Reach(settings, cutting, store, self._membership, self._view, log, clock)
        self._reporting = Reporting(store, self._membership, clock, self._reach.budget, self._reach.steering.history)
        self._committing = Committing(
            store,
            self._membership,
            clock,
            self._evidence,
            self._holding,
            self._founding,
            self._losses,
            unread_batches=settings.unread_batches,
        )
        self._seen: tuple[object, ...] | None = None
        self._warned_of: int | None = None  # when the last batch began that took too long
        self._pace = Pace(clock)

    # -- what Spark's calls become -------------------------------------------------------------

    @property
    def member(self) -> str:
        """This member's id; empty until an offset has reached it."""
        return self._membership.member

    def first_positions(self) -> None:
        """Give the group its first positions where it has none (spec 7, Start); idempotent, joins nothing."""
        self._membership.outside(self._founding.first_positions)

    def set_targets(self) -> None:
        """AvailableNow: this run ends where the log ends now."""
        self._pace.targets = self._reach.gates.targets(self._view.look())

    def next_offset(self, start: StreamOffset, limits: Limits) -> StreamOffset | None:
        """Commit `start`, then the offset of the next batch; None if there is nothing to do."""
        self._accept(start)
        self._reporting.ended(self._reach.steering.ended(start))
        self._holding.begin()
        skipped = self._committing.commit(start)
        while True:
            self._pace.rest()
            acquired, work, until = self._look(limits)
            if skipped or self._pace.anything(work, until):
                if not self._holding.fresh:
                    self._holding.forget()
                elif self._membership.lease_left_ms <= 0:
                    self.heartbeat_now()
                elif not self._recreated(acquired.topic_ids):
                    return self._plan(acquired, work, until)
            elif self._pace.targets is not None:
                if self._finished():
                    return None
            else:
                return None

    def authorize(self, end: StreamOffset) -> StreamOffset:
        """The part of `end` that this member may read (R7); asks once for each offset."""
        self._accept(end)
        self._evidence.arrived(end)
        verdict = self._evidence.authorised(end)
        if verdict is None:
            verdict = self._membership.call(lambda caller: self._store.authorize(caller, end))
            verdict = self._reach.quarantine.readable(verdict, end)
            self._holding.forget()
            self._evidence.authorise(end, verdict)
        gone = tuple(data_loss.recreated(end.topic_ids, self._view.topics))  # asked for by `_accept`, or for the plan
        fail = self._settings.fail_on_data_loss
        readable = data_loss.without(narrowed(end, verdict), gone, fail_on_data_loss=fail)
        if readable != end:
            _log.warning(
                "group %s: part of a batch is owned by others by now, or parked, and is left out", self._settings.group
            )
        return readable

    def tasks(self, end: StreamOffset) -> tuple[Task, ...]:
        """The tasks of the batch that ends at `end`, with what of it this member may read."""
        return self._reach.steering.began(end, self.authorize(end))

    @property
    def trial(self) -> bool:
        """Whether the batch planned last tries a struck lane alone (spec 7, Poison)."""
        return self._reach.quarantine.trial

    def hear(self, costs: Iterable[SliceCost]) -> None:
        """What executors report of the batch under way; called on either thread, and read under a lock."""
        self._reach.steering.inbox.receive(costs)

    def heartbeat(self) -> None:
        """One heartbeat; called on the heartbeat thread, and by `leave` once that thread has ended."""
        self._membership.beat(self._store.heartbeat)
        at, trial = self._reach.steering.inbox.under_way()
        self._reach.quarantine.tell(at, trial=trial)
        self._warn_of_a_long_batch()

    def _warn_of_a_long_batch(self) -> None:
        """Once a batch, on the heartbeat thread: the batch may hang, and then nothing else says so."""
        began, longest_ms = self._reach.steering.inbox.began_ms(), self._settings.longest_ms
        if began is None or began == self._warned_of or self._clock.now_ms() - began <= longest_ms:
            return
        self._warned_of = began
        _log.warning(
            "group %s: a batch takes longer than longest.batch.ms (%d ms), so other members may take its ranges; "
            "`coop-kafka top` shows its slowest lane. Raise longest.batch.ms, or lower batch.time.budget",
            self._settings.group,
            longest_ms,
        )

    def heartbeat_now(self) -> None:
        """Renew the lease on the main thread, and wait until it is acknowledged."""
        self._membership.call(self._store.heartbeat)

    def leave(self) -> None:
        """Free every range that has no unconfirmed slice, and say goodbye; errors are left to the lease's end."""
        self.heartbeat()  # it alone pushes the group's expiry, and a short run has not had one
        self._committing.again()
        self._warn_of_parked_lanes()
        unconfirmed = self._evidence.unconfirmed
        if self._membership.leave({tp: unconfirmed.get(tp, ()) for tp in {*self._view.bounds, *unconfirmed}}):
            self._holding.hand_overs.left(unconfirmed)
            self._founding.mirror()
        else:
            self._holding.hand_overs.ended()

    def _warn_of_parked_lanes(self) -> None:
        """A run that ends leaves parked lanes unread, and ends well."""
        if parked := self._reach.quarantine.parked:
            _log.warning(
                "group %s: parked lanes stay unread: %d, of them %s at offset %d; `coop-kafka parked %s` shows them, "
                "`coop-kafka release` lets them be read",
                self._settings.group,
                len(parked),
                parked[0].tp,
                parked[0].offset,
                self._settings.group,
            )

    def check_policies(self) -> None:
        """Refuse a start that asks for parts of partitions where they may not be had (codes 88, 89)."""
        if self._settings.demanding:
            policy = self._membership.outside(self._store.policy)
            refuse_demand(policy, self._settings.group, self._view.topics)

    def check_store(self, check: Callable[[], None]) -> None:
        """Run a check of the Redis server, through its outages."""
        self._membership.outside(check)

    def log_ends(self) -> dict[TopicPartition, int]:
        """The log ends at the last look."""
        return {tp: b.end for tp, b in self._view.bounds.items()}

    @property
    def lanes(self) -> LanesTold:
        """This member's lanes as they were planned last."""
        return self._reporting.lanes

    def _say(self) -> Joining:
        """What this member says of itself when it joins."""
        fields = {**self._me.fields, **self._subscribes(), **self._settings.commit_fields, **self._reporting.fields}
        return replace(self._me, fields=fields, targets=self._pace.targets or {})

    def _subscribes(self) -> dict[str, str]:
        settings = self._settings
        protocols = tuple(Protocol(a.name, a.version) for a in settings.assignors)
        return fields_of(frozenset(self._view.topics), settings.capacity, protocols, sharing=settings.sharing)

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
        self._losses.refuse_beyond(offset)
        self._membership.identify(offset.member)
        if not self._membership.joined:
            self._reach.quarantine.blame()  # an earlier life of this member may have been lost over a record

    # -- plan ----------------------------------------------------------------------------------

    def _look(self, limits: Limits) -> tuple[Acquired, OwnedRanges, dict[TopicPartition, int]]:
        """What is owned, the work there is and how far to read it, after the losses and limits."""
        self._view.refresh()
        acquired, bounds = self._holding.refresh(), self._view.look()
        while self._is_news(acquired, bounds) and not self._settled(acquired, bounds):
            acquired, bounds = self._holding.refresh(), self._view.look()
        self._pace.adopt(self._membership.targets, self._holding.targets, bounds)
        ends = self._pace.ends(bounds)
        work = self._reach.limit(acquired, bounds, ends, self._holding, everything=limits.everything)
        until = self._pace.until(work, bounds, limits)
        self._reporting.planned(self._reach.planned(until))
        return acquired, work, until

    def _is_news(self, *seen: object) -> bool:
        """Whether anything was seen that was not there at the last look, at which all was settled."""
        now = (*seen, self._view.topics, self._membership.joined)
        return self._seen is None or not all(map(is_, now, self._seen))

    def _settled(self, acquired: Acquired, bounds: Mapping[TopicPartition, Bounds]) -> bool:
        """Whether losses are dealt with and the log ends told; else positions have moved, or partitions are gone."""
        if not acquired.progress.keys() <= bounds.keys() or self._losses.met(acquired, bounds):
            return False
        self._membership.outside(lambda: self._founding.report_ends(bounds, acquired, self._membership.joined))
        self._seen = (acquired, bounds, self._view.topics, self._membership.joined)
        return True

    def _finished(self) -> bool:
        """AvailableNow: whether all is at its target; what waits for older partitions, or is parked, is left out."""
        targets = {tp: o for tp, o in (self._pace.targets or {}).items() if tp not in self._reach.gates.closed}
        return self._membership.call(lambda caller: self._store.finish(caller, targets))

    def _recreated(self, topic_ids: Mapping[str, str]) -> tuple[data_loss.Recreated, ...]:
        """The topics that have other ids by now: what was seen of their logs before may be of the new ones."""
        self._view.ask()
        return tuple(data_loss.recreated(topic_ids, self._view.topics))

    def _plan(self, acquired: Acquired, work: OwnedRanges, until: Mapping[TopicPartition, int]) -> StreamOffset:
        lanes = plan(work, until, self._reach.steering.cutting)
        epochs = leader_epochs(lanes, self._view.bounds)
        group, member = self._settings.group, self._membership.member
        end = StreamOffset(group, member, acquired.reset, acquired.topic_ids, lanes, epochs)
        self._evidence.add_unconfirmed(end)
        if any(lane.offsets for _, lane in end):
            self._pace.planned()
            self._reach.quarantine.planned()
        return end
