"""A step decides: from the state and the answers, to the next state, effects and an outcome. Pure.

    step(state, seen, call) --> Decision      the step has all its answers
                            --> a request     `seen` has no answer to it: the step runs again with the answer
                            --> an error      a named error, which ends the call of Spark

A step depends on nothing else: it runs again after each answer, and makes the same requests. It sees only the answers
to its own requests, so no answer is older than the step. The state holds all that outlives a step.

    seen.of(request)     the answer to a read
    seen.done(request)   the answer to a write that the step needs before it goes on
    effects              all other writes; the next state holds only if they succeed
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.rebalance import union
from coordinator.assignment.settings import GroupSettings
from coordinator.errors import CoopKafkaError
from coordinator.member.evidence import NOTHING
from coordinator.member.kinds import Request
from coordinator.member.limits import NO_LIMITS, Limits
from coordinator.member.state import State
from coordinator.plan.cost.quotas import Budget
from coordinator.plan.planning import Cutting
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.replies import Joining
from coordinator.values.offset_spec import OffsetSpec
from coordinator.values.subscription import Assigned, Subscription, Topics

T = TypeVar("T")

RETRY_MS = 200
"""The wait of a call that cannot go on, before it looks again."""
LOOK_MS = 1_000
"""The age at which known topics, known strikes and shown lanes are looked at again."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The constants of a member."""

    settings: GroupSettings
    subscription: Subscription
    starting: OffsetSpec
    cutting: Cutting
    me: Joining

    @property
    def pinned(self) -> Ranges:
        """The ranges that a pinned member names; none if the group assigns its ranges (rule: pinned-or-assigned)."""
        given = self.subscription
        if not (self.settings.group and isinstance(given, Assigned) and given.pinned):
            return {}
        return {tp: union(hashes) for tp, hashes in given.partitions.items()}

    @property
    def partial(self) -> bool:
        """Whether other reads of the query read some of the joined topics (rule: joined-topics)."""
        return isinstance(self.subscription, Topics) and not {*self.cutting.joined} <= {*self.subscription.names}

    @property
    def budget(self) -> Budget:
        """The time budget of a batch, and the slots."""
        return Budget(self.settings.batch_budget_ms, self.cutting.slots)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of Spark: `offset` is the start of the next batch, or the end of the batch to read."""

    setup: Setup
    offset: StreamOffset = NOTHING
    limits: Limits = NO_LIMITS


class NotSeen(Exception):  # noqa: N818 - a request, not an error
    """A step needs the answer to this request."""

    def __init__(self, request: Request[Any]) -> None:
        super().__init__(request)
        self.request = request


@dataclass(frozen=True, slots=True)
class Seen:
    """The answers to the requests of one step, and the time in ms of this host's clock."""

    now_ms: int
    answers: tuple[tuple[Request[Any], Any], ...] = ()

    def of(self, request: Request[T]) -> T:
        """The answer to a read; raises `NotSeen` if it has none yet."""
        if request.kind.writes:
            raise AssertionError(f"{request} writes: an effect, or `done`")
        return self.done(request)

    def done(self, request: Request[T]) -> T:
        """The answer to a write that must come before the rest of the step; raises `NotSeen` if it has none yet."""
        for asked, answer in self.answers:
            if asked == request:
                return cast(T, answer)
        raise NotSeen(request)

    def with_answer(self, request: Request[T], answer: T) -> "Seen":
        """The same with one more answer."""
        return replace(self, answers=(*self.answers, (request, answer)))


@dataclass(frozen=True, slots=True)
class Next:
    """Go on with the next step."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Run this step again with the answer."""


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Wait so many ms, and begin with the first step. `why`: for the log line of a call that waits for long."""

    wait_ms: int = 0
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Fail:
    """The call ends with this error."""

    error: CoopKafkaError


@dataclass(frozen=True, slots=True)
class Return:
    """The call ends with this value."""

    value: object


Outcome = Next | Ask | LookAgain | Fail | Return


@dataclass(frozen=True, slots=True)
class Decision:
    """The next state, the effects to apply in this order, and how the call goes on once they are applied.

    If Redis refuses an effect, the state stays as it was, and the call begins with its first step.
    """

    state: State
    effects: tuple[Request[Any], ...] = ()
    outcome: Outcome = field(default_factory=Next)


Step = Callable[[State, Seen, Call], Decision]


def decide(step: Step, state: State, seen: Seen, call: Call) -> Decision:
    """The decision of one step; see the module."""
    try:
        return step(state, seen, call)
    except NotSeen as missing:
        return Decision(state, (missing.request,), Ask())
    except CoopKafkaError as error:
        return Decision(state, (), Fail(error))
