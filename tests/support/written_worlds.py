"""Worlds with prepared answers: tests compare the requests of `turns`.

    Script   the next answer to each call; answers that are errors are raised, and a notice has failed
    ByKind   an answer for each kind of request
    Hands    a clock that only waiting moves

Each state that the turns make is checked for its invariants.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from coordinator.assignment.settings import GroupSettings
from coordinator.member import requests
from coordinator.member.apply import World
from coordinator.member.invariants import check
from coordinator.member.kinds import Kind, Request
from coordinator.member.state import State
from coordinator.member.turns import Turns
from coordinator.redis import replies
from coordinator.redis.replies import Answer, Caller
from states import NONCE, NOW, joined

SESSION_MS = 45_000


class Hands:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now, self.waits = NOW, list[int]()

    def now_ms(self) -> int:
        return self.now

    def wall_ms(self) -> int:
        return self.now

    def wait(self, ms: int) -> None:
        self.now += ms
        self.waits.append(ms)

    def wake(self) -> None:
        pass


class Script:
    """A world that returns the next answer to each call, and raises answers that are errors."""

    def __init__(self, *answers: Any) -> None:
        self.settings = GroupSettings("g", watch=self.watch, session_ms=SESSION_MS)
        self.answers, self.asked, self.states = list(answers), list[tuple[Request[Any], Caller]](), list[State]()

    def watch(self, state: State) -> None:
        check(state)
        self.states.append(state)

    def answer(self, request: Request[Any], caller: Caller) -> Any:
        self.asked.append((request, caller))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception) and request.kind.notice:
            return False
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def requests(self) -> list[Request[Any]]:
        return [request for request, _ in self.asked]

    @property
    def numbers(self) -> list[str]:
        return [caller.number for _, caller in self.asked]


class ByKind(Script):
    """A world that has an answer for each kind of request; a list is answered one after the other."""

    def __init__(self, answers: Mapping[Kind[..., Any], Any]) -> None:
        super().__init__()
        self.of = {kind: list(a) if isinstance(a, list) else a for kind, a in answers.items()}

    def answer(self, request: Request[Any], caller: Caller) -> Any:
        answer = self.of[request.kind]
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        self.answers.append(answer(request) if isinstance(answer, Callable) else answer)  # type: ignore[arg-type]
        return super().answer(request, caller)

    def names(self) -> str:
        """The requests since the last time, by name."""
        names = {kind: name for name, kind in vars(requests).items() if isinstance(kind, Kind)}
        found = " ".join(names[request.kind] for request in self.requests)
        self.asked.clear()
        return found


def turns(world: Script, state: State | None = None, clock: Hands | None = None) -> Turns:
    """The turns of a member in this state; by default it has joined."""
    return Turns(state or joined(), cast(World, world), clock or Hands())


def answered(value: Any, nonce: str = NONCE, seq: int = 9) -> Answer[Any]:
    """An answer of Redis, which renews the lease."""
    return Answer(replies.SeenState(nonce, seq), value)
