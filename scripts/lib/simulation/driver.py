"""A Spark driver: its calls to the source in Spark's order, with WAL, commit log, tasks and a sink that crashes leave.

    start      no WAL: initialOffset. A WAL without its commit: the last batch again
    loop       latestOffset(start) -> WAL -> partitions -> tasks write -> sink complete -> commit log
    end        polite: leave. Killed: nothing. Tasks may write on for a while in both cases

Each actor's code reads like Spark's; every call of the service has scheduling points inside it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coordinator.errors import CoopKafkaError
from coordinator.key_hash import hash_key
from coordinator.packing import pack
from coordinator.redis_membership import Joining
from coordinator.redis_store import RedisStore
from coordinator.service import Service
from coordinator.stream_offset import StreamOffset
from coordinator.subscription import Topics
from simulation.actors import Actor, Stopped
from simulation.kafka import KEYS, TOPIC, Record, SimulatedLog
from simulation.redis_server import Line
from simulation.sink import Violation
from simulation.tasks import Task
from simulation.wishes import Wishes

if TYPE_CHECKING:
    from simulation.world import World

_HASHES = tuple(hash_key(key) for key in KEYS)
Cells = frozenset[tuple[object, int, str]]


@dataclass(slots=True)
class Attempt:
    """What the attempts at one batch had in common so far."""

    cells: Cells  # partition, hash, lane epoch that were authorised every time
    records: list[Record] | None  # of an attempt at the whole of it


@dataclass(slots=True)
class Checkpoint:
    """A checkpoint folder, which outlives its drivers."""

    name: str
    wal: list[str] = field(default_factory=list)
    committed: set[int] = field(default_factory=set)
    attempts: dict[int, Attempt] = field(default_factory=dict)
    shared: bool = False  # two drivers have had it at once: Spark promises nothing then but to end one of them
    lost: bool = False  # a driver found that nothing proves a position


class Driver:
    """One life of one application: JVM and reader process."""

    def __init__(self, world: "World", name: str, checkpoint: Checkpoint, wishes: Wishes) -> None:
        self.world, self.name, self.checkpoint, self.wishes = world, name, checkpoint, wishes
        self.line = Line(world.server, self.trace)
        self.ended = ""
        self.founding = False  # it may have seen that there is no group, and be about to found one
        self._planned: list[str] = []  # the offsets it knows, as the offset log held them when it started
        self.tasks: list[Task] = []
        self._planned_at = world.invariants.state
        settings = world.settings(wishes, checkpoint.lost)
        store = RedisStore.of(self.line, settings, now=lambda: world.server.now_ms)
        self._heartbeat_ms = settings.heartbeat_ms
        self.service = Service(
            settings,
            Topics((TOPIC,)),
            world.starting,
            wishes.cutting,
            store=store,
            log=SimulatedLog(world.kafka, world.scheduler.turn),
            clock=world.clock,
            me=Joining({"host": name}),
        )
        self.main = world.scheduler.spawn(name, self._life)
        self.heart: Actor | None = None

    def trace(self, what: object) -> None:
        """One line of the story."""
        self.world.trace(f"{self.name}({self.checkpoint.name}) {what}")

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.main.alive

    @property
    def actors(self) -> Iterator[Actor]:
        """The threads of its reader process."""
        yield self.main
        if self.heart:
            yield self.heart

    # -- its life ------------------------------------------------------------------------------

    def _life(self) -> None:
        try:
            self.world.scheduler.turn()
            self._spark()
        except Stopped:
            self._end("stopped politely")
        except CoopKafkaError as error:
            self.world.expect(self, error)
            self._end(f"failed: {error}")

    def _end(self, why: str) -> None:
        self.trace(why)
        self.ended = why
        if self.heart:
            self.world.scheduler.kill(self.heart)
        self.service.leave()

    def _spark(self) -> None:
        ck = self.checkpoint
        self._planned = list(ck.wal)
        replays = bool(ck.wal) and len(ck.wal) - 1 not in ck.committed
        if self.wishes.available_now:
            self._open()
            self.service.set_targets()
        if not self._planned:
            self._initial()
        elif replays and not self._batch(len(self._planned) - 1):
            return
        while self._next_batch():
            self.world.scheduler.turn(self.wishes.interval_ms)

    def _next_batch(self) -> bool:
        """Whether the query goes on."""
        ck, n = self.checkpoint, len(self._planned)
        end = self._latest(self._planned[-1] if self._planned else self._initial_offset())
        if end is None:
            if self.wishes.available_now:
                self._finished()
            return not self.wishes.available_now
        if len(ck.wal) != n:
            self._concurrent("offset log")
            return False
        ck.wal.append(end)
        self._planned.append(end)
        self.trace(f"WAL {n}: {end}")
        self._nothing_confirmed(StreamOffset.from_json(json.loads(end)))
        self.world.scheduler.turn()
        return self._batch(n)

    def _finished(self) -> None:
        targets = self.service._pace.targets or {}  # noqa: SLF001 - what the run had to reach
        missing = [r for tp, end in targets.items() for r in self.world.needed(tp, end)]
        if missing:
            raise Violation(f"AVAILABLE NOW: {self.name} ended before {missing[0]} was in the sink")
        self._end("AvailableNow has ended")

    def _concurrent(self, log: str) -> None:
        if not self.checkpoint.shared:
            raise Violation(f"CHECKPOINT: {self.name} found an entry of another driver in its {log}")
        self._end(f"another driver wrote the {log}")

    # -- Spark's calls -------------------------------------------------------------------------

    def _initial_offset(self) -> str:
        return _text(StreamOffset(self.world.group))

    def _initial(self) -> None:
        self._open()
        self.founding = True
        for _ in range(self.wishes.initial_calls):
            self.service.first_positions()
        self.founding = False

    def _latest(self, start: str) -> str | None:
        self._open()
        self._planned_at = self.world.invariants.state
        end = self.service.next_offset(StreamOffset.from_json(json.loads(start)), self.wishes.limits)
        return None if end is None or _text(end) == start else _text(end)

    def _batch(self, n: int) -> bool:
        """Run batch `n`; whether the query goes on."""
        world, ck = self.world, self.checkpoint
        if n == 0:
            self._initial()
        end = StreamOffset.from_json(json.loads(self._planned[n]))
        self._open()
        readable = self.service.authorize(end)
        if self.wishes.initial_calls > 1 and self.service.authorize(end) != readable:
            raise Violation(f"PARTITIONS: two answers for batch {n}")
        packed = pack(readable.slices, tasks=self.wishes.cutting.slots)
        read = [[r for s in slices for r in world.kafka.read(s)] for slices in packed]
        records = [r for of_task in read for r in of_task]
        self.trace(f"batch {n} reads {' '.join(map(str, records))}" + ("" if readable == end else " (part skipped)"))
        self._same_as_before(n, end, readable, records)
        self.tasks = [world.start_task(self, r) for r in read if r]
        while not all(t.done for t in self.tasks):
            world.scheduler.turn(30)
        world.sink.complete(ck.name, n, records)
        self.trace(f"sink complete {n}")
        world.scheduler.turn()
        if n in ck.committed:
            self._concurrent("commit log")
            return False
        ck.committed.add(n)
        self.trace(f"commit log {n}")
        world.scheduler.turn()
        return True

    def _open(self) -> None:
        if self.heart is None:
            self.heart = self.world.scheduler.spawn(f"{self.name}'s heart", self._beat)

    def _beat(self) -> None:
        while True:
            self.world.scheduler.turn(self._heartbeat_ms)
            self.service.heartbeat()

    # -- what a replay and a first run must keep -------------------------------------------------

    def _same_as_before(self, n: int, end: StreamOffset, readable: StreamOffset, records: list[Record]) -> None:
        """A replay that owns everything has the same records; no attempt is given more than an earlier one."""
        everything, cells = _cells(end), _cells(readable)
        before = self.checkpoint.attempts.setdefault(n, Attempt(cells, None))
        if cells - before.cells:
            raise Violation(f"REPLAY: batch {n} was authorised more than at an earlier attempt")
        before.cells = cells
        if cells == everything:
            if before.records not in (None, sorted(records)):
                raise Violation(f"REPLAY: batch {n} has other records than at its first attempt")
            before.records = sorted(records)

    def _nothing_confirmed(self, end: StreamOffset) -> None:
        """What was confirmed before a batch was planned is not in it, unless positions went back since (spec 1)."""
        now = self.world.invariants.state
        for r in (r for s in end.slices for r in self.world.kafka.read(s)):
            if r.offset < min(self._planned_at.position(r), now.position(r)):
                raise Violation(f"REPEAT: {r} was confirmed and is planned again")


def _text(offset: StreamOffset) -> str:
    return json.dumps(offset.to_json(), separators=(",", ":"))


def _cells(offset: StreamOffset) -> Cells:
    return frozenset((tp, h, lane.epoch) for tp, lane in offset for h in _HASHES if h in lane.hashes)
