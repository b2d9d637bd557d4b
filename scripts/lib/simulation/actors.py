"""Actors that take turns: each part of the simulation with a life of its own, one step at a time, on virtual time.

Service, store and heartbeat are synchronous code, so each actor runs in a greenlet. A call of `turn` is a scheduling
point: other actors run, time passes, or the actor is killed there. One random generator decides everything, so a seed
replays exactly. Knows nothing of the actors' work.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

import greenlet

BEGINNING_MS = 4_000_000_000_000  # far in the future of the real Redis, which expires keys by its own clock
_STEPS_MS = (0, 0, 0, 1, 10, 60, 250)


class Stopped(BaseException):
    """Raised in an actor that must end normally."""


class Actor:
    """One life; `pause` and `throw` are called from outside."""

    def __init__(self, name: str, body: Callable[[], None]) -> None:
        self.name, self.wakes_at = name, 0
        self.greenlet = greenlet.greenlet(body)

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return not self.greenlet.dead


class Scheduler:
    """Runs the actors in turns, and moves time."""

    def __init__(self, random: Random) -> None:
        self._random, self._hub = random, greenlet.getcurrent()
        self.actors: list[Actor] = []
        self.now_ms = BEGINNING_MS
        self._current: Actor | None = None

    def spawn(self, name: str, body: Callable[[], None]) -> Actor:
        """A new actor that has not begun."""
        actor = Actor(name, body)
        actor.greenlet.parent = self._hub
        self.actors.append(actor)
        return actor

    def turn(self, ms: int = 0) -> None:
        """A scheduling point of the running actor: it goes on `ms` later at the earliest."""
        if self._current is None:
            return
        self._current.wakes_at = self.now_ms + ms
        self._hub.switch()

    def step(self) -> None:
        """Let one actor run to its next scheduling point; if all wait, time passes first."""
        self.actors = [a for a in self.actors if a.alive]
        if self.actors:
            self.now_ms = max(self.now_ms + self._random.choice(_STEPS_MS), min(a.wakes_at for a in self.actors))
            self._resume(self._random.choice([a for a in self.actors if a.wakes_at <= self.now_ms]))
        else:
            self.now_ms += 1_000

    def kill(self, actor: Actor) -> None:
        """End the actor at its scheduling point; no more of its code runs. An actor may end itself so."""
        if self.runs(actor):
            raise greenlet.GreenletExit
        if actor.alive:
            actor.greenlet.parent = greenlet.getcurrent()  # the next greenlet to run after its end
            actor.greenlet.throw(greenlet.GreenletExit)

    def runs(self, actor: Actor) -> bool:
        """Whether it is its turn."""
        return actor.greenlet is greenlet.getcurrent()

    def throw(self, actor: Actor, request: BaseException) -> None:
        """Raise `request` at the actor's scheduling point; it runs on from there."""
        self._resume(actor, request)

    def _resume(self, actor: Actor, request: BaseException | None = None) -> None:
        self._current = actor
        try:
            if request is None:
                actor.greenlet.switch()
            elif actor.greenlet:  # it has begun
                actor.greenlet.throw(request)
            else:
                self.kill(actor)
        finally:
            self._current = None


class Jvm:
    """The caller of a reader process. If it dies during a call, that process stops once the call has returned."""

    def __init__(self) -> None:
        self.calls = self.dead = False

    @contextmanager
    def calling(self) -> Iterator[None]:
        """A call of the reader process."""
        self.calls = True
        try:
            yield
        finally:
            self.calls = False
        if self.dead:
            raise Stopped


class VirtualClock:
    """`coordinator.values.clock.Clock` on the scheduler's time, of one process."""

    def __init__(self, scheduler: Scheduler, early: Random) -> None:
        self._scheduler, self._early, self._woken = scheduler, early, False

    def now_ms(self) -> int:
        """The virtual time since a fixed moment."""
        return self._scheduler.now_ms

    def wall_ms(self) -> int:
        """The same: the simulation needs no calendar."""
        return self._scheduler.now_ms

    def wait(self, ms: int) -> None:
        """Let `ms` pass, or more; or some part of them, if `wake` was called."""
        self._scheduler.turn(self._early.randrange(ms) if self._woken and ms else ms)
        self._woken = False

    def wake(self) -> None:
        """End the next wait at any moment."""
        self._woken = True
