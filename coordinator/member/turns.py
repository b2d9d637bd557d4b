"""Runs the steps of one call of Spark: look, decide, apply. It holds the one state of a member.

    decide   a step makes the next state and effects; it is pure
    apply    the effects are applied one by one, and the step receives each answer
    refused  a verdict or an outage of Redis becomes part of the state, and the call begins with its first step again

`run` and `end` run on the main thread of the reader's process. `beside` runs on threads of tasks, on a copy of the
state. `once` also runs on other threads: it reads the state, and passes renewed leases to `run` through a queue. In a
call, only the main thread replaces the state. Between two calls the heartbeat thread may do so (`between_calls`), and
the next call waits for it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from queue import SimpleQueue
from threading import Lock
from typing import Any

from coordinator.errors import RedisNotReadyError, RedisUnavailableError
from coordinator.member.apply import World
from coordinator.member.decision import Ask, Call, Fail, LookAgain, Next, Return, Seen, Step, decide
from coordinator.member.kinds import Kind, Request
from coordinator.member.requests import Log
from coordinator.member.state import Away, Life, State, Turn
from coordinator.redis import replies
from coordinator.redis.replies import Answer, Caller
from coordinator.values.clock import Clock
from coordinator.values.verdicts import Rejoin, Verdict

WAIT_MS = 10
"""The wait of a call for the heartbeat thread. A simulated clock moves only in waits."""
SILENT_MS = 6_000
"""A call that has waited for so long says why, and again whenever that has doubled. A try takes up to 4 s more."""


class Refused:
    """Redis has refused a request, or did not answer; the state holds the reason."""


class Waiting:
    """The waits of one call, and when a line about them is due."""

    def __init__(self, began_ms: int) -> None:
        self._began_ms, self._silent_ms, self._why, self._looks = began_ms, SILENT_MS, "", 0

    def line(self, now_ms: int, why: str) -> str:
        """The line that is due now; empty if none is. A first look again without a reason is no wait."""
        self._why, waited_ms, self._looks = why or self._why, now_ms - self._began_ms, self._looks + 1
        if waited_ms < self._silent_ms or (self._looks == 1 and not why):
            return ""
        self._silent_ms = 2 * waited_ms
        return f"the query has waited for {waited_ms // 1000} s: {self._why or 'it looks again'}"


class Turns:
    """The state of one member, and the calls that change it; `settings.watch` sees each state."""

    def __init__(self, state: State, world: World, clock: Clock) -> None:
        self.state = state
        self._world, self._clock, self._watch = world, clock, world.settings.watch
        self._numbers = count(1)
        self._call = Lock()  # held in each call of Spark
        self._renewals: SimpleQueue[tuple[replies.Seen, int]] = SimpleQueue()

    def run(self, steps: Sequence[Step], call: Call) -> Any:
        """The value of a call of Spark; raises the named errors of its steps."""
        while not self._call.acquire(blocking=False):
            self._clock.wait(WAIT_MS)
        try:
            return self._run(steps, call)
        finally:
            self._call.release()

    def end(self, steps: Sequence[Step], call: Call) -> Any:
        """The last call. It waits for no other: a signal may have ended that at any moment."""
        return self._run(steps, call)

    def beside(self, steps: Sequence[Step], call: Call) -> Any:
        """A call of another thread: the steps see a copy of the state, and change nothing of this one."""
        copy = replace(self.state, life=replace(self.state.life, verdict=None))
        return Turns(copy, self._world, self._clock).end(steps, call)

    @contextmanager
    def between_calls(self) -> Iterator[bool]:
        """Whether no call of Spark runs: then none begins before the end. For the heartbeat thread."""
        free = self._call.acquire(blocking=False)
        try:
            yield free
        finally:
            if free:
                self._call.release()

    def _run(self, steps: Sequence[Step], call: Call) -> Any:
        self.become(replace(self.state, turn=Turn(), life=replace(self.state.life, away=None)))
        at, seen = 0, Seen(0)
        waiting = Waiting(self._clock.now_ms())
        while True:
            self._renew()
            decision = decide(steps[at], self.state, replace(seen, now_ms=self._clock.now_ms()), call)
            before, outcome = self.state, decision.outcome
            self.become(decision.state)
            for request in decision.effects:
                answer = self._apply(request, before)
                if isinstance(answer, Refused):
                    outcome = LookAgain()
                    break
                seen = seen.with_answer(request, answer)
            match outcome:
                case Ask():
                    continue
                case Next():
                    at, seen = at + 1, Seen(0)
                case LookAgain():
                    at, seen = 0, Seen(0)
                    self._wait(outcome, waiting)
                case Fail(error):
                    raise error from None
                case Return(value):
                    return value

    def _wait(self, look: LookAgain, waiting: Waiting) -> None:
        if line := waiting.line(self._clock.now_ms(), look.why):
            self.once(Log(f"group {self._world.settings.group}: {line}"))
        if look.wait_ms:
            self._clock.wait(look.wait_ms)
            self.become(replace(self.state, turn=replace(self.state.turn, fresh=False)))

    def become(self, state: State) -> None:
        """The next state: in a call of Spark, or between two."""
        self.state = state
        if self._watch:
            self._watch(state)

    def once(self, request: Request[Any]) -> Any:
        """One call without retries, on either thread; raises its errors and verdicts. It has no number."""
        asked_ms = self._clock.now_ms()
        reply = self._world.answer(request, self.state.life.caller)
        if not isinstance(reply, Answer):
            return reply
        self._renewals.put((reply.seen, asked_ms + self._world.settings.session_ms))
        return reply.value

    def _caller(self, *, numbered: bool) -> Caller:
        """One of the calls that the main thread makes one after the other has a number (rule: numbered-calls)."""
        caller = self.state.life.caller
        return replace(caller, number=str(next(self._numbers))) if numbered else caller

    def _renew(self) -> None:
        life = self.state.life
        while not self._renewals.empty():
            life = life.renewed(*self._renewals.get())
        if life is not self.state.life:
            self.become(replace(self.state, life=life))

    def _apply(self, request: Request[Any], before: State) -> Any:
        """The answer. If Redis refuses the request, the state is the one before the step."""
        kind, asked_ms = request.kind, self._clock.now_ms()
        try:
            reply = self._world.answer(request, self._caller(numbered=kind.numbered))
        except Verdict as verdict:
            self.become(replace(before, life=refused(before.life.answered(kind), verdict)))
            return Refused()
        except RedisUnavailableError as error:
            if not kind.of_redis:
                raise
            self.become(replace(before, life=unanswered(before.life, error, asked_ms, kind)))
            return Refused()
        life = self.state.life.answered(kind) if kind.of_redis else self.state.life
        if isinstance(reply, Answer):
            life = life.renewed(reply.seen, asked_ms + self._world.settings.session_ms)
            reply = reply.value
        self.become(replace(self.state, life=life))
        return reply


def refused(life: Life, verdict: Verdict) -> Life:
    """The life of a member after a verdict: REJOIN forgets the nonce; a step handles each other verdict."""
    return life.rejoining() if isinstance(verdict, Rejoin) else replace(life, verdict=verdict)


def unanswered(life: Life, error: RedisUnavailableError, asked_ms: int, kind: Kind[..., Any]) -> Life:
    """The life of a member after a request of this kind that Redis has not answered."""
    before = life.away or Away(asked_ms, error)
    away = Away(before.since_ms, error, unanswered=before.unanswered | {kind})
    return replace(life, reached=life.reached or isinstance(error, RedisNotReadyError), away=away)
