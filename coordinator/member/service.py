"""One member of a group: what each call of Spark becomes.

    first_positions   before a query's first batch: joins nothing, writes positions where there are none
    next_offset       start is sink-complete: commit it, then plan the next batch within the lease
    authorize         before every batch, first run or replay: which parts of it are still owned
    tasks             the same, packed into tasks
    leave             frees what is confirmed

Each call is a list of steps, which `turns` runs in this order. Runs in the stream reader's process, on its main
thread. The heartbeat thread calls `heartbeat` and `hear` only: it reads the state, and writes to queues.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

from coordinator import ports
from coordinator.assignment.policies import refuse_demand
from coordinator.clock import Clock
from coordinator.cost.steering import Steering
from coordinator.errors import CoopKafkaError, RedisUnavailableError
from coordinator.member import (
    accepting,
    authorizing,
    committing,
    first_positions,
    growing,
    heartbeat,
    life,
    log_view,
    losing,
    mirroring,
    ownership_events,
    owning,
    pacing,
    planning,
    poison,
    reading,
    recovery,
    reporting,
)
from coordinator.member.apply import World
from coordinator.member.decision import Call, Decision, Return, Seen, Setup, Step
from coordinator.member.inbox import Inbox
from coordinator.member.kinds import Request
from coordinator.member.limits import Limits
from coordinator.member.requests import CheckServer, Heartbeat, Leave, ReadPolicy, ReportWorking
from coordinator.member.state import Life, State
from coordinator.member.turns import Turns
from coordinator.offset_spec import OffsetSpec
from coordinator.plan.packing import Task
from coordinator.plan.planning import Cutting
from coordinator.progress.stream_offset import StreamOffset
from coordinator.replies import Joining
from coordinator.reports.lane_lines import LanesTold
from coordinator.settings import GroupSettings
from coordinator.subscription import Subscription, TopicPartition
from coordinator.telemetry import SliceCost
from coordinator.verdicts import Verdict

_log = logging.getLogger(__name__)


def _check_policies(state: State, seen: Seen, call: Call) -> Decision:
    """Refuse a start that asks for parts of partitions where policies forbid it (codes 88, 89)."""
    if call.setup.settings.demanding:
        refuse_demand(seen.of(ReadPolicy()), call.setup.settings.group, state.log.topics)
    return Decision(state, (), Return(None))


ALIVE: tuple[Step, ...] = (
    life.outage,
    log_view.see_topics,
    life.fenced,
    recovery.recover,
    life.assert_positions,
    life.busy,
)
"""The first steps of every call: what Redis refused last is dealt with."""

CHECK_POLICIES = (*ALIVE, _check_policies)
FIRST_POSITIONS = (*ALIVE, first_positions.first_positions)
SET_TARGETS = (*ALIVE, log_view.see_logs, growing.set_targets)
NEXT_OFFSET = (
    *ALIVE,
    accepting.accept,
    committing.learn,
    poison.strike_before_join,
    committing.witness,
    life.join,
    committing.commit,
    mirroring.mirror_if_due,
    pacing.rest,
    owning.report_topics,
    owning.follow,
    log_view.see_logs,
    losing.settle_losses,
    pacing.adopt_targets,
    growing.log_growths,
    poison.strike_after_acquire,
    poison.see_strikes,
    reading.limit,
    pacing.pace_batch,
    reporting.show_lanes,
    planning.look_closer,
    planning.end_run,
    planning.plan_batch,
)
_AUTHORIZED = (
    *ALIVE,
    accepting.accept,
    poison.strike_before_join,
    authorizing.arrive,
    life.join,
    authorizing.authorize,
    poison.leave_out_struck,
)
AUTHORIZE = (*_AUTHORIZED, authorizing.return_readable)
TASKS = (*_AUTHORIZED, authorizing.return_tasks)


class Service:
    """One member's work on one group; see the module."""

    def __init__(
        self,
        settings: GroupSettings,
        subscription: Subscription,
        starting: OffsetSpec,
        cutting: Cutting,
        *,
        store: ports.Store,
        log: ports.Log,
        clock: Clock,
        me: Joining,
    ) -> None:
        self.setup = Setup(settings, subscription, starting, cutting, me)
        self._clock, self._inbox, self._pulse = clock, Inbox(), heartbeat.Pulse()
        self.guesses = guesses = Steering(clock, cutting, self.setup.budget, concurrency=settings.concurrency)
        world = World(settings, subscription, store, log, guesses, self._inbox, clock)
        born = Life(settings.tokens(8), f"m-{settings.tokens(4)}")
        self._turns = Turns(State(born), world, clock)

    @property
    def state(self) -> State:
        """The state of this member."""
        return self._turns.state

    @property
    def member(self) -> str:
        """This member's id; empty until an offset has reached it."""
        return self.state.life.member

    def check_store(self, check: Callable[[], None]) -> None:
        """Run a check of the Redis server, through its outages."""

        def checked(state: State, seen: Seen, call: Call) -> Decision:
            return Decision(state, (), Return(seen.of(CheckServer(check))))

        self._run((life.outage, checked))

    def check_policies(self) -> None:
        """Refuse a start that asks for parts of partitions where policies forbid it (codes 88, 89)."""
        self._run(CHECK_POLICIES)

    def first_positions(self) -> None:
        """Create the group's first positions where it has none; idempotent, joins nothing."""
        self._run(FIRST_POSITIONS)

    def set_targets(self) -> None:
        """AvailableNow: this run ends where the log ends now."""
        self._run(SET_TARGETS)

    def next_offset(self, start: StreamOffset, limits: Limits) -> StreamOffset | None:
        """Commit `start`, then the offset of the next batch; None if there is nothing to do."""
        return cast(StreamOffset | None, self._run(NEXT_OFFSET, start, limits))

    def authorize(self, end: StreamOffset) -> StreamOffset:
        """The part of `end` that this member may read; asks Redis once for each offset."""
        return cast(StreamOffset, self._run(AUTHORIZE, end))

    def tasks(self, end: StreamOffset) -> tuple[Task, ...]:
        """The tasks of the batch that ends at `end`, with what of it this member may read."""
        return cast(tuple[Task, ...], self._run(TASKS, end))

    def _run(self, steps: tuple[Step, ...], offset: StreamOffset | None = None, limits: Limits | None = None) -> object:
        call = Call(self.setup, offset or Call(self.setup).offset, limits or Limits())
        return self._turns.run(steps, call)

    # -- what others look at -------------------------------------------------------------------

    @property
    def trial(self) -> bool:
        """Whether the batch planned last tries a struck lane, while all others wait."""
        return self.state.batch is not None and self.state.batch.trial

    @property
    def lanes(self) -> LanesTold:
        """This member's lanes as they were planned last."""
        return self.state.shown.lanes

    def log_ends(self) -> dict[TopicPartition, int]:
        """The log ends at the last look."""
        return {tp: b.end for tp, b in self.state.log.bounds.items()}

    # -- the heartbeat thread ------------------------------------------------------------------

    def hear(self, costs: Iterable[SliceCost]) -> None:
        """Receive reports of executors on the batch under way; called on either thread."""
        self._inbox.receive(costs)

    def heartbeat(self) -> None:
        """One heartbeat: renew the lease, report the slices under way, warn of a batch that takes too long."""
        if self.state.life.nonce:
            self._once(Heartbeat(), "heartbeat")
        news = heartbeat.working_news(self._pulse, self.state, self._inbox.under_way())
        if news and self._once(ReportWorking(news[0]), "heartbeat"):
            self._pulse = replace(self._pulse, working=news)
        self._pulse, line = heartbeat.long_batch(self._pulse, self.state, self._clock.now_ms(), self.setup.settings)
        self._show(line)

    def _once(self, request: Request[Any], what: str, *, numbered: bool = False) -> bool:
        """One call: an error is logged, and left for the next call of Spark. Whether it went well."""
        try:
            self._turns.once(request, numbered=numbered)
        except RedisUnavailableError as error:
            about = f"{what} of {self.member}"
            now, settings = self._clock.now_ms(), self.setup.settings
            self._pulse, line = heartbeat.outage_line(self._pulse, error, about, now, settings)
            self._show(line)
            return False
        except (CoopKafkaError, Verdict) as error:
            _log.warning("%s of %s: %s", what, self.member, error or type(error).__name__)
            return False
        self._pulse = replace(self._pulse, away=None)
        return True

    def _show(self, line: Request[bool] | None) -> None:
        if line:
            self._turns.once(line)

    # -- the end -------------------------------------------------------------------------------

    def leave(self) -> None:
        """Free every range that has no unconfirmed slice, and leave; errors are left to the end of the lease.

        Spark stops a query at any moment, also in a commit: what the sink has completed is then committed once more.
        """
        self.heartbeat()  # it alone pushes the group's expiry, and a short run has not had one
        under_way = self.state.commits.under_way
        if under_way and self.state.life.nonce and self._once(under_way.request, "last commit", numbered=True):
            commits = replace(self.state.commits, under_way=None)
            self._turns.become(replace(self.state, evidence=self.state.evidence.confirmed(), commits=commits))
        self._warn_of_parked_lanes()
        unconfirmed = self.state.evidence.unconfirmed_ranges
        ranges = {tp: unconfirmed.get(tp, ()) for tp in {*self.state.log.partitions, *unconfirmed}}
        left = bool(self.state.life.nonce) and self._once(Leave(ranges), "leave")
        shown = self.state.owning.shown
        for notice in ownership_events.left(shown, unconfirmed) if left else ownership_events.notified(shown, {})[0]:
            self._turns.once(notice)
        self._turns.become(replace(self.state, owning=replace(self.state.owning, shown={})))
        if left:
            self._turns.become(replace(self.state, life=self.state.life.rejoining()))
            if request := mirroring.mirror_request(self.state):
                self._turns.once(request)

    def _warn_of_parked_lanes(self) -> None:
        """A run that ends leaves parked lanes unread, and ends well."""
        group = self.setup.settings.group
        if parked := [s for s in self.state.strikes.strikes if s.parked]:
            _log.warning(
                "group %s: parked lanes stay unread: %d, of them %s at offset %d; `coop-kafka parked %s` shows them, "
                "`coop-kafka release` lets them be read",
                *(group, len(parked), parked[0].tp, parked[0].offset, group),
            )
