"""The real Valkey of the simulation: watched scripts, copies, losses, and connections with faults.

A `Line` replaces a driver's `RedisClient`. Every call is a scheduling point. It may get no answer, or an answer that is
lost, late or repeated, or run long after its caller has timed out. In some schedules, a Redis that is away answers
reads: then the Valkey refuses the writes of that call.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

import redis

from coordinator.errors import RedisUnavailableError
from coordinator.redis.client import RedisClient, TextRedis
from coordinator.redis.keys import GROUPS, GroupKeys
from coordinator.redis.verb import Reply
from simulation.actors import Scheduler
from simulation.sink import Violation

_QUIET_VERBS = ("status", "heartbeat", "authorize")  # these move no position and no owner
_TIMEOUT_MS = (0, 1_000)
FATES = ("refused", "lost", "lost", "late", "repeated", "ghost")
FATES_OF_ONE_LIFE = tuple(fate for fate in FATES if fate != "ghost")  # no call comes after the end of its process
PEACEFUL_FATES = ("late", "repeated")  # faults without a visible effect


@dataclass(slots=True)
class Server:
    """One group in one Valkey; `watch` runs after every script that may have changed it."""

    client: RedisClient
    raw: redis.Redis
    keys: GroupKeys
    scheduler: Scheduler
    random: Random
    watch: Callable[[], None] = lambda: None
    deleted: Callable[[], None] = lambda: None  # called right after an operator's call has deleted the group
    skew_ms: int = 0  # Redis TIME against the hosts' clocks
    away_until_ms: int = 0
    unreliable: float = 0.0  # probability of a fault in one call
    fates: Sequence[str] = FATES
    reads_on: bool = False  # a server that refuses a call refuses its writes only
    copies: list[dict[bytes, bytes]] = field(default_factory=list)
    ghosts: list[tuple[str, Sequence[str], Sequence[str]]] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    held: dict[str, int] = field(default_factory=dict)  # keys that expire, and when in the simulated time

    @property
    def now_ms(self) -> int:
        """The simulated Redis TIME."""
        return self.scheduler.now_ms + self.skew_ms

    def run(self, verb: str, keys: Sequence[str], args: Sequence[str]) -> Reply:
        """Run a script now, and check the state after it."""
        asked = json.loads(args[0])
        asked["call"]["now"] = str(self.now_ms)
        self.seen["scripts"] += 1
        try:
            reply = self.client.run(verb, keys, [json.dumps(asked)])
            if verb == "delete" and not asked["arguments"]["count_only"]:
                self.deleted()
            return reply
        finally:
            if verb not in _QUIET_VERBS:
                self.watch()

    @contextmanager
    def refusing(self, *, writes: bool) -> Iterator[None]:
        """The Valkey lacks the replicas that it must have, for the body of `with`."""
        self.seen["writes refused"] += writes
        if writes:
            self.raw.config_set("min-replicas-to-write", 1)
        try:
            yield
        finally:
            if writes:
                self.raw.config_set("min-replicas-to-write", 0)

    def run_ghost(self) -> None:
        """Run a script whose caller timed out long ago."""
        verb, keys, args = self.ghosts.pop(self.random.randrange(len(self.ghosts)))
        try:
            self.run(verb, keys, args)
            self.seen[f"late {verb}"] += 1
        except Exception as answer:  # noqa: BLE001 - its caller has gone
            self.seen[f"ghost {type(answer).__name__}"] += 1

    def copy(self) -> None:
        """Keep a copy of the current group."""
        names = sorted(self._names())
        together = self.raw.pipeline(transaction=True)
        for name in names:
            together.dump(name)
        self.copies.append(dict(zip(names, together.execute(), strict=True)))

    def restore(self) -> None:
        """From now on another server with an old copy answers: restarted from it, or a stale replica."""
        self.empty()
        together = self.raw.pipeline(transaction=True)
        for name, dump in self.random.choice(self.copies).items():
            together.restore(name, 0, dump, replace=True)
        together.execute()
        self.restart()

    def restart(self) -> None:
        """The same data under another run id."""
        self.raw.hset(self.keys.meta, "run_id", "0")

    def empty(self) -> None:
        """Delete the whole group."""
        if names := self._names():
            self.raw.delete(*names)

    def forget(self) -> None:
        """Leave nothing behind."""
        self.empty()
        self.raw.srem(GROUPS, self.keys.group)

    def _names(self) -> list[bytes]:
        return list(self.raw.scan_iter(self.keys.meta.removesuffix("meta") + "*", count=1000))


class Line(RedisClient):
    """One driver's connection; see the module."""

    def __init__(self, server: Server, trace: Callable[[str], None]) -> None:
        self._server, self.trace = server, trace
        self.ran: Callable[[str], None] = lambda verb: None  # called right after a script succeeded
        self.doom: tuple[str, Callable[[], None]] | None = (
            None  # a verb or another moment, and the action right after it
        )
        self.done: dict[str, int] = {}  # number of each verb's latest successful script

    def run(self, verb: str, keys: Sequence[str], args: Sequence[str]) -> Reply:
        """The script's reply, if it arrives."""
        server = self._server
        fate = self._before()
        refuses = fate == "refused"
        if refuses and not server.reads_on:
            raise self._no_answer(verb, fate)
        if fate == "ghost":
            server.ghosts.append((verb, keys, args))
            raise self._no_answer(verb, fate)
        try:
            with server.refusing(writes=refuses):
                reply = self._execute(verb, keys, args)
            if fate == "repeated":
                reply = self._execute(verb, keys, args)
        except BaseException as answer:
            self.trace(f"{verb} -> {type(answer).__name__} {answer}")
            if fate == "lost" and not isinstance(answer, Violation):
                raise self._no_answer(verb, fate) from None
            raise
        self.trace(
            f"{verb} {json.loads(args[0])['arguments']} -> {list(reply.values())[2:]}" + (f" ({fate})" if fate else "")
        )
        self.passes(verb)
        if fate == "lost":
            raise self._no_answer(verb, fate)
        if fate == "late":
            server.scheduler.turn(server.random.choice((100, 900)))
        return reply

    def passes(self, moment: str) -> None:
        """The driver has come to a moment at which it may be doomed to end."""
        if self.doom and self.doom[0] == moment:
            self.doom[1]()

    def _execute(self, verb: str, keys: Sequence[str], args: Sequence[str]) -> Reply:
        reply = self._server.run(verb, keys, args)
        self.done[verb] = self._server.seen["scripts"]
        self.ran(verb)
        return reply

    @contextmanager
    def reading(self) -> Iterator[TextRedis]:
        """The plain client, if it can be reached."""
        fate, server = self._before(), self._server
        if fate in ("ghost", "lost") or (fate == "refused" and not server.reads_on):
            raise self._no_answer("plain commands", "refused")
        with server.refusing(writes=fate == "refused"), server.client.reading() as plain:
            yield plain

    def close(self) -> None:
        """Does nothing: the simulation owns the connection."""

    def _before(self) -> str:
        server = self._server
        server.scheduler.turn()
        if server.scheduler.now_ms < server.away_until_ms:
            return "refused"
        if server.random.random() >= server.unreliable:
            return ""
        fate = server.random.choice(server.fates)
        server.seen[fate] += 1
        return fate

    def _no_answer(self, verb: str, fate: str) -> RedisUnavailableError:
        self.trace(f"{verb} -> no answer ({fate})")
        self._server.scheduler.turn(self._server.random.choice(_TIMEOUT_MS))
        return RedisUnavailableError(f"no answer in the simulation ({fate})")
