"""The calls of Spark on one streaming query, with and without a group. Each call is a list of steps for `turns`.

Runs in the stream reader's process, on its main thread. `receive` runs on the heartbeat thread too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from coordinator.assignment.settings import GroupSettings
from coordinator.member.apply import World
from coordinator.member.decision import Call, Setup, Step
from coordinator.member.evidence import NOTHING
from coordinator.member.inbox import Inbox
from coordinator.member.limits import NO_LIMITS, Limits
from coordinator.member.progress_report import behind_latest, failing_progress
from coordinator.member.state import UNSEEN, Life, State
from coordinator.member.turns import Turns
from coordinator.plan.cost.steering import Steering
from coordinator.plan.cost.telemetry import SliceCost
from coordinator.plan.packing import Task
from coordinator.plan.planning import Cutting
from coordinator.plan.poison import singly
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.lane_lines import LaneReport
from coordinator.redis.replies import Joining
from coordinator.redis.store import Store
from coordinator.values.clock import Clock
from coordinator.values.log import Log
from coordinator.values.offset_spec import OffsetSpec
from coordinator.values.subscription import Subscription, TopicPartition


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of each call."""

    first: tuple[Step, ...]
    set_targets: tuple[Step, ...]
    next_offset: tuple[Step, ...]
    tasks: tuple[Step, ...]
    settle: tuple[Step, ...] = ()  # of a member only


class Query:
    """One streaming query; see the module."""

    steps: ClassVar[Steps]

    def __init__(
        self,
        settings: GroupSettings,
        subscription: Subscription,
        starting: OffsetSpec,
        cutting: Cutting,
        *,
        log: Log,
        clock: Clock,
        store: Store | None = None,
        me: Joining | None = None,
    ) -> None:
        self.setup = Setup(settings, subscription, starting, cutting, me or Joining({}))
        self._clock, self._inbox = clock, Inbox()
        self.guesses = guesses = Steering(clock, cutting, self.setup.budget, concurrency=settings.concurrency)
        world = World(settings, subscription, store, log, guesses, self._inbox, clock)
        self._turns = Turns(State(Life(settings.tokens(8), f"m-{settings.tokens(4)}")), world, clock)

    @property
    def state(self) -> State:
        """The state of this query."""
        return self._turns.state

    def set_targets(self) -> None:
        """AvailableNow: this run ends where the log ends now."""
        self._run(self.steps.set_targets)

    def next_offset(self, start: StreamOffset, limits: Limits) -> StreamOffset | None:
        """Commit `start`, then the offset of the next batch; None if there is nothing to do."""
        return cast(StreamOffset | None, self._run(self.steps.next_offset, start, limits))

    def tasks(self, end: StreamOffset) -> tuple[Task, ...]:
        """The tasks of the batch that ends at `end`, with the parts that this query may read.

        Asks Redis once for each offset.
        """
        return cast(tuple[Task, ...], self._run(self.steps.tasks, end))

    def receive(self, costs: Iterable[SliceCost]) -> None:
        """Receive reports of executors on the batch under way."""
        self._inbox.receive(costs, self._clock.now_ms())

    def log_ends(self) -> dict[TopicPartition, int]:
        """The log ends at the last look, of the leaders that have ever answered."""
        return {tp: b.end for tp, b in self.state.log.bounds.items() if b is not UNSEEN}

    @property
    def filtered(self) -> int:
        """Records that the filter dropped in the completed batches of this process, as far as tasks reported them."""
        return self.state.shown.filtered

    @property
    def failing(self) -> dict[str, int]:
        """Counts of failing keys of the group, and of the records that tasks left out or dead-lettered since the start.

        Empty without any.
        """
        return failing_progress(self.state.failing.records, self.state.shown.skipped, self.state.shown.dead_lettered)

    @property
    def lanes(self) -> LaneReport:
        """The lanes of the last plan; none without a group."""
        return self.state.shown.lanes

    @property
    def beside_ms(self) -> float:
        """See `Steering.beside_ms`."""
        return self.guesses.beside_ms

    def singly(self, task: Sequence[Slice]) -> bool:
        """Whether a task of the last planned batch takes and reports records one by one (rule: struck-lane-apart)."""
        return self.state.batch is not None and singly(task, self.state.batch.trials)

    def behind_latest(self, end: StreamOffset) -> dict[str, str]:
        """The lag after the batch that ends at `end`, by Spark's names."""
        return behind_latest(end, self.log_ends())

    def _run(self, steps: tuple[Step, ...], offset: StreamOffset = NOTHING, limits: Limits = NO_LIMITS) -> Any:
        return self._turns.run(steps, Call(self.setup, offset, limits))
