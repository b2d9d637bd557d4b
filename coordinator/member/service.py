"""One member of a group: the steps of each call of Spark, which `turns` runs in this order.

    first_positions   before a query's first batch: does not join, writes positions where there are none
    next_offset       start is in the sink: commit it, then plan the next batch within the lease
    tasks             before every batch, first run or replay: the parts of it that are still owned, packed into tasks
    leave             frees confirmed ranges

The heartbeat thread calls `heartbeat` and `receive` only: it reads the state, and writes to queues. Between two calls
of Spark it also joins again.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from coordinator.errors import CoopKafkaError, FencedMemberError, RedisUnavailableError
from coordinator.member import (
    accepting,
    authorizing,
    committing,
    failing,
    first_positions,
    founding,
    growing,
    heartbeat,
    leaving,
    life,
    log_view,
    losing,
    mirroring,
    obeying,
    owning,
    pacing,
    pinned,
    planning,
    poison,
    reading,
    recovery,
)
from coordinator.member.decision import Call, Decision, Return, Seen, Step
from coordinator.member.kinds import Request
from coordinator.member.query import Query, Steps
from coordinator.member.requests import CheckServer, Heartbeat, ReportWorking, Seal
from coordinator.member.state import State
from coordinator.member.turns import refused
from coordinator.plan.failing_keys import Records, by_partition, room
from coordinator.progress.ends import Ends
from coordinator.progress.failing import NO_FAILURES, Failures
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.replies import LATER, Leaving
from coordinator.values import verdicts
from coordinator.values.subscription import TopicPartition
from coordinator.values.verdicts import Verdict

_log = logging.getLogger(__name__)


def settled(state: State, seen: Seen, call: Call) -> Decision:
    """The start is committed, and nothing is planned: the member leaves for another set (rule: one-member-a-set)."""
    return Decision(state, (), Return(None))


def seal(state: State, seen: Seen, call: Call, *, request: Request[bool]) -> Decision:
    """Seal the ends of a batch. After a loss of state its lane epochs are void: then only this process asserts them."""
    life, fenced = state.life, isinstance(state.life.verdict, verdicts.Fenced)
    if not fenced and (life.verdict or not life.nonce or seen.done(request)):
        return Decision(state, (), Return(None))
    raise FencedMemberError(
        f"another driver with the same checkpoint has taken over member {life.member} of group "
        f"{call.setup.settings.group!r} while a batch was read",
        "give each query a checkpoint of its own; this one has lost nothing and can be stopped",
    )


ALIVE: tuple[Step, ...] = (
    life.outage,
    log_view.see_topics,
    life.fenced,
    founding.replaced,
    recovery.recover,
    first_positions.prove,
    life.assert_positions,
    life.busy,
    pinned.held,
)
"""The first steps of every call: they handle the last refusal of Redis."""

CHECK_POLICIES = (*ALIVE, obeying.check_start)
FIRST_POSITIONS = (*ALIVE, log_view.see_logs, first_positions.first_positions)
SET_TARGETS = (*ALIVE, log_view.see_logs, growing.set_targets)
COMMIT = (
    *ALIVE,
    accepting.accept,
    committing.learn,
    poison.strike_before_join,
    committing.witness,
    life.join,
    committing.commit,
)
BEFORE_A_LOOK = (
    mirroring.mirror_if_due,
    owning.forget_topics,
    pacing.rest,
    owning.report_topics,
    obeying.copy_cluster_policies,
)
NEXT_OFFSET = (
    *COMMIT,
    *BEFORE_A_LOOK,
    owning.follow,
    log_view.see_logs,
    losing.settle_losses,
    pacing.adopt_targets,
    growing.log_growths,
    poison.strike_after_acquire,
    poison.see_strikes,
    failing.see_failing,
    reading.limit,
    pacing.pace_batch,
    planning.show_lanes,
    planning.look_closer,
    planning.end_run,
    planning.plan_batch,
)
TASKS = (
    *ALIVE,
    accepting.accept,
    poison.strike_before_join,
    authorizing.arrive,
    life.join,
    failing.see_failing,
    authorizing.authorize,
    poison.leave_out_struck,
    authorizing.return_tasks,
)


class Service(Query):
    """One member's work on one group; see the module."""

    steps = Steps(FIRST_POSITIONS, SET_TARGETS, NEXT_OFFSET, TASKS, (*COMMIT, settled))
    _pulse = heartbeat.Pulse()

    @property
    def member(self) -> str:
        """The id of this member; empty until an offset has reached it."""
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
        self._run(self.steps.first)

    def settle(self, start: StreamOffset) -> None:
        """Commit `start`, and plan nothing: the member is about to leave for another set (rule: one-member-a-set)."""
        self._run(self.steps.settle, start)

    # -- for readers ---------------------------------------------------------------------------

    def failing_of(self, tasks: Sequence[Sequence[Slice]]) -> tuple[Records, Mapping[TopicPartition, int]]:
        """The known failing records, and how many more keys of each partition one of these tasks may defer."""
        records = by_partition(self.state.failing.records)
        return records, room(records, tasks, self.setup.settings.max_deferred_keys)

    # -- the heartbeat thread ------------------------------------------------------------------

    def heartbeat(self) -> None:
        """One heartbeat: renew the lease, report the slices under way, warn of a long batch."""
        if self.state.life.nonce and not isinstance(self.state.life.verdict, verdicts.Fenced):
            self._try(self._renew)
        work = heartbeat.unreported_work(self._pulse, self.state, self._inbox.under_way(self._clock.now_ms()))
        if work and self.setup.settings.ordering != "none":
            reported = self._try(lambda: self._turns.once(ReportWorking(work[0])))
            self._pulse = replace(self._pulse, working=work if reported else heartbeat.NOT_KNOWN)
        all_ended, now_ms = self._inbox.all_ended, self._clock.now_ms()
        self._pulse, line = heartbeat.long_batch(
            self._pulse, self.state, now_ms, self.setup.settings, all_ended=all_ended
        )
        self._show(line)

    def _renew(self) -> None:
        """Renew the lease. After a recovery join again, and after FENCED never (rule: recovering-session).

        The batch may be longer than a session, so the member cannot wait for the next call of Spark. A call that runs
        joins by itself.
        """
        try:
            self._turns.once(Heartbeat(reading=heartbeat.reads(self.state, all_ended=self._inbox.all_ended)))
        except verdicts.Rejoin:
            with self._turns.between_calls() as free:
                if free:
                    *asserting, joins = life.rejoining(self.state, Call(self.setup))
                    for request in asserting:
                        self._turns.once(request)
                    self._turns.become(life.joined(self.state, self._turns.once(joins)))
        except verdicts.Fenced as fenced:
            with self._turns.between_calls() as free:
                if free:
                    self._turns.become(replace(self.state, life=refused(self.state.life, fenced)))
            raise

    def _try(self, work: Callable[[], object]) -> bool:
        """Whether it succeeded. An error is logged, and left to the next call of Spark."""
        try:
            work()
        except RedisUnavailableError as error:
            about = f"heartbeat of {self.member}"
            now, settings = self._clock.now_ms(), self.setup.settings
            self._pulse, line = heartbeat.outage_line(self._pulse, error, about, now, settings)
            self._show(None if self.state.life.away else line)  # a call of Spark that waits says so itself
            return False
        except (CoopKafkaError, Verdict) as error:
            _log.warning("heartbeat of %s: %s", self.member, error)
            return False
        self._pulse = replace(self._pulse, away=None)
        return True

    def _show(self, line: Request[bool] | None) -> None:
        if line:
            self._turns.once(line)

    # -- threads of tasks ------------------------------------------------------------------------

    def agreed_ends(self, digest: str, task: int) -> Ends | None:
        """The ends at which an attempt of a task must stop; None if no attempt of it has ended (rule: first-end-wins).

        Raises `KeyError` if the batch with this digest is not under way.
        """
        return self._inbox.agreed(digest, task)

    def no_task_connects(self) -> None:
        """No task connects to this process any more: each reads to its planned ends."""
        self._inbox.no_task_connects()

    def end_task(self, digest: str, task: int, ends: Ends, failures: Failures = NO_FAILURES) -> Ends:
        """An attempt of a task has ended its slices here; the ends of its first attempt. Other ends make it fail.

        The last task waits until the ends of the batch are sealed (rule: seal-before-sink). Where some tasks may not
        report theirs, or the batch has a seal, each task waits for its own early ends (rule: seal-as-planned,
        rule: replay-may-defer). Failing records are stored with the seal.
        Raises `KeyError` if the batch is not under way, `RedisUnavailableError`, `FencedMemberError`.
        """
        batch = self.state.batch  # first: the main thread may replace it as soon as the last task has ended
        ended = self._inbox.agree(digest, task, ends, failures)
        if batch and not batch.may_defer:
            return ended.agreed  # all tasks read to their planned ends: these need no seal
        if batch and batch.sealed:
            if ended.early:
                self._seal(Seal(digest, ended.early, ended.failures.failing))
        elif ended.whole is not None:
            self._seal(Seal(digest, ended.whole, ended.all_failures.failing))
        return ended.agreed

    def _seal(self, request: Request[bool]) -> None:
        self._turns.beside((life.outage, partial(seal, request=request)), Call(self.setup))

    # -- the end -------------------------------------------------------------------------------

    def leave(self, how: Leaving = LATER) -> None:
        """Free every range without an unconfirmed slice, and leave; `how` long others wait for the rest.

        The last call: the heartbeat thread has ended.
        """
        self.heartbeat()  # only heartbeats extend the group's expiry, and a short run has had none
        steps = (leaving.commit_again, leaving.warn_of_parked, partial(leaving.free, how=how))
        self._turns.end(steps, Call(self.setup))
