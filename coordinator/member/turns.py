"""Runs the steps of one call of Spark: look, decide, apply. It holds the one state of a member.

    decide   a step makes the next state and effects; it is pure
    apply    the effects are applied one by one, and the step receives each answer
    refused  a verdict or an outage of Redis becomes part of the state, and the call begins with its first step again

`run` runs on the main thread of the reader's process. `once` also runs on other threads: it reads the state, and passes
renewed leases to `run` through a queue. In a call, only the main thread replaces the state. Between two calls the
heartbeat thread may do so (`between_calls`), and the next call waits for it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from queue import SimpleQueue
from threading import Lock
from typing import Any

from coordinator import replies
from coordinator.clock import Clock
from coordinator.errors import RedisUnavailableError
from coordinator.member.apply import World
from coordinator.member.decision import Ask, Call, Fail, LookAgain, Next, Return, Seen, Step, decide
from coordinator.member.kinds import Request
from coordinator.member.state import Away, Life, State, Turn
from coordinator.replies import Answer, Caller
from coordinator.verdicts import Rejoin, Verdict

WAIT_MS = 10
"""The wait of a call for the heartbeat thread. A simulated clock moves only in waits."""


class Refused:
    """Redis has refused a request, or did not answer; the state holds the reason."""


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
        self.become(replace(self.state, turn=Turn()))
        at, seen = 0, Seen(0)
        while True:
            self._renew()
            decision = decide(steps[at], self.state, replace(seen, now_ms=self._clock.now_ms()), call)
            self.become(decision.state)
            outcome = decision.outcome
            for request in decision.effects:
                answer = self._apply(request)
                if isinstance(answer, Refused):
                    outcome = LookAgain()
                    break
                seen = seen.with_answer(request, answer)
            match outcome:
                case Ask():
                    continue
                case Next():
                    at, seen = at + 1, Seen(0)
                case LookAgain(wait_ms):
                    at, seen = 0, Seen(0)
                    if wait_ms:
                        self._clock.wait(wait_ms)
                        self.become(replace(self.state, turn=replace(self.state.turn, fresh=False)))
                case Fail(error):
                    raise error from None
                case Return(value):
                    return value

    def become(self, state: State) -> None:
        """The next state: in a call of Spark, or between two."""
        self.state = state
        if self._watch:
            self._watch(state)

    def once(self, request: Request[Any], *, numbered: bool = False) -> Any:
        """One call without retries, on either thread; raises its errors and verdicts.

        `numbered`: one of the calls that the main thread makes one after the other (rule: numbered-calls).
        """
        asked_ms = self._clock.now_ms()
        reply = self._world.answer(request, self._caller(numbered=numbered))
        if not isinstance(reply, Answer):
            return reply
        self._renewals.put((reply.seen, asked_ms + self._world.settings.session_ms))
        return reply.value

    def _caller(self, *, numbered: bool) -> Caller:
        caller = self.state.life.caller
        return replace(caller, number=str(next(self._numbers))) if numbered else caller

    def _renew(self) -> None:
        life = self.state.life
        while not self._renewals.empty():
            life = life.renewed(*self._renewals.get())
        if life is not self.state.life:
            self.become(replace(self.state, life=life))

    def _apply(self, request: Request[Any]) -> Any:
        kind, asked_ms = request.kind, self._clock.now_ms()
        try:
            reply = self._world.answer(request, self._caller(numbered=kind.numbered))
        except Verdict as verdict:
            self.become(replace(self.state, life=refused(self.state.life, verdict)))
            return Refused()
        except RedisUnavailableError as error:
            if not kind.of_redis:
                raise
            self.become(replace(self.state, life=unanswered(self.state.life, error, asked_ms)))
            return Refused()
        life = replace(self.state.life, reached=True, away=None) if kind.of_redis else self.state.life
        if isinstance(reply, Answer):
            life = life.renewed(reply.seen, asked_ms + self._world.settings.session_ms)
            reply = reply.value
        self.become(replace(self.state, life=life))
        return reply


def refused(life: Life, verdict: Verdict) -> Life:
    """The life of a member after a verdict: REJOIN forgets the nonce; a step handles each other verdict."""
    life = replace(life, reached=True, away=None)
    return life.rejoining() if isinstance(verdict, Rejoin) else replace(life, verdict=verdict)


def unanswered(life: Life, error: RedisUnavailableError, asked_ms: int) -> Life:
    """The life of a member after a call that Redis has not answered."""
    return replace(life, away=Away(life.away.since_ms if life.away else asked_ms, error))
