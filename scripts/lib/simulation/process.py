"""The processes of a driver, JVM and reader process: their service, their heartbeat, and how they end."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol, cast

from coordinator.assignment.settings import GroupSettings
from coordinator.errors import CoopKafkaError
from coordinator.member.cooperative import Cooperative
from coordinator.member.limits import Limits
from coordinator.member.service import Service
from coordinator.plan.packing import Task as Packed
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.group_state import STANDBY
from coordinator.redis.replies import Joining, Leaving
from coordinator.redis.store import store_of
from coordinator.values.subscription import Subscription
from simulation import failures, pins
from simulation.actors import Actor, Jvm, Stopped, VirtualClock
from simulation.checkpoint import Checkpoint
from simulation.kafka import RACKS, SimulatedLog
from simulation.redis_server import Line
from simulation.sink import Violation
from simulation.tasks import Task
from simulation.wishes import Wishes
from simulation.world import SESSION_MS, World

HEARTBEAT_MS = 1_000
_GONE_MS = 3_000


class Query(Protocol):
    """The calls of Spark."""

    def first_positions(self) -> None:
        """See `Service.first_positions`."""

    def set_targets(self) -> None:
        """See `Service.set_targets`."""

    def next_offset(self, start: StreamOffset, limits: Limits) -> StreamOffset | None:
        """See `Service.next_offset`."""

    def tasks(self, end: StreamOffset) -> Sequence[Packed]:
        """See `Service.tasks`."""


class Process(ABC):
    """One life of one application: JVM and reader process. A subclass runs the query."""

    def __init__(
        self, world: World, name: str, checkpoint: Checkpoint, wishes: Wishes, settings: GroupSettings
    ) -> None:
        self.world, self.name, self.checkpoint, self.wishes = world, name, checkpoint, wishes
        self.settings = settings
        self.pinned, self.filter = checkpoint.pinned, settings.filter
        self.ended = ""
        self.creating = False  # it may have looked before there was a group, and be about to create one
        self.tasks: list[Task] = []
        self.jvm = Jvm()
        self.hangs_since: int | None = None  # the time when its batch met a record that never ends
        self._before_leaving = world.invariants.state  # the state when it began to end
        self._lease_ms, self._skew_ms = 0.0, 0  # the end of its lease then, and how far the clock of Redis was off
        self.writers = ""  # tasks that may read on after its end, in words
        self._serve(world)
        self.main = world.scheduler.spawn(name, self._life)
        self.heart: Actor | None = None

    def _serve(self, world: World) -> None:
        """Become a member of the group of this world."""
        self.world, self.line = world, Line(world.server, self.trace)
        settings, rack = replace(self.settings, group=world.group), RACKS[int(self.name[1:]) % len(RACKS)]
        made = Cooperative if world.without_order else Service
        self.service = made(
            settings,
            self._subscription(),
            world.starting,
            self.wishes.cutting,
            store=store_of(ScriptCalls.of(self.line, settings, now=lambda: world.server.now_ms)),
            log=SimulatedLog(
                world.kafka, world.scheduler.turn, committed=world.brokers.reads_committed(), early=world.early
            ),
            clock=VirtualClock(world.scheduler, world.early),
            me=Joining({"host": self.name, "rack": rack}),
        )
        self.query: Query = self.service
        self.last_read = 0  # the number of reads of all members after its own last one

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics to which it subscribes."""
        return self.checkpoint.topics or self.world.kafka.topics

    def _subscription(self) -> Subscription:
        partitions = [tp for tp in self.world.kafka.logs if tp.topic in self.topics]
        return pins.subscription(self.pinned, partitions, self.topics, assigned=self.checkpoint.assigned)

    def trace(self, what: object) -> None:
        """Write one line of the story."""
        self.world.trace(f"{self.name}({self.checkpoint.name}) {what}")

    def note(self, what: str, fact: object = None) -> None:
        """Tell the record of the schedule what Spark does, which Redis does not see."""
        self.world.noted(what, self.service.state.life.caller, fact)

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.main.alive

    @property
    def at_work(self) -> bool:
        """Whether it does not end, and attempts of its tasks run."""
        return not self.ended and any(task.runs for task in self.tasks)

    @property
    def spare(self) -> bool:
        """Whether it waits for the end of another member."""
        life = self.service.state.life
        return life.role == STANDBY or (not life.nonce and life.other is not None)

    @property
    def member(self) -> str:
        """Its member id; empty until it has one."""
        return self.service.member

    @property
    def actors(self) -> Iterator[Actor]:
        """The threads of its reader process."""
        yield self.main
        if self.heart:
            yield self.heart

    def open(self) -> None:
        """Begin the heartbeat, at the first call that needs the reader process."""
        if self.heart is None:
            self.heart = self.world.scheduler.spawn(f"{self.name}'s heart", self._beat)

    def end(self, why: str) -> None:
        """The query ends by itself, or by a normal stop: its member leaves."""
        self.trace(why)
        self.ended = why
        self._leave()

    def _leave(self) -> None:
        if self.heart:
            self.world.scheduler.kill(self.heart)
        self.writers = self._stop_tasks()
        self._lease_ms = cast(float, self.world.server.raw.zscore(self.world.server.keys.leases, self.member) or 0)
        self._before_leaving, self._skew_ms = self.world.invariants.state, self.world.server.skew_ms
        self.service.leave(Leaving.of(self.writers, 0))

    def _stop_tasks(self) -> str:
        """The tasks that may read on after the end of their connections, in words (rule: leave-keeps-unconfirmed)."""
        if self.tasks and self.wishes.unreached == 1.0:
            return "no task has reached it"
        cut_off = [task for task in self.tasks if not task.stop()]
        until_ms = self.world.scheduler.now_ms + _GONE_MS
        while any(task.asking for task in self.tasks) and self.world.scheduler.now_ms < until_ms:
            self.world.scheduler.turn(100)
        cut_off += [task for task in self.tasks if task.asking]
        self.world.server.seen["cut off"] += bool(cut_off)
        return "a task has not stopped" if cut_off else ""

    def concurrent(self, log: str) -> None:
        """End, because another driver has written an entry of a log of the checkpoint."""
        if not self.checkpoint.shared:
            raise Violation(f"CHECKPOINT: {self.name} found an entry of another driver in its {log}")
        self.end(f"another driver wrote the {log}")

    @abstractmethod
    def _spark(self) -> None:
        """The query, until it ends by itself."""

    def _life(self) -> None:
        try:
            self.world.scheduler.turn()
            self._spark()
        except Stopped:
            self.end("stopped politely")
        except CoopKafkaError as error:
            failures.of_the_latest_life(self.world, self.checkpoint, self.name, self.member, error)
            failures.expect(self.world, self.checkpoint, error)
            self.end(f"failed: {error}")

    def _beat(self) -> None:
        while True:
            since_ms = self.world.scheduler.now_ms
            self.world.scheduler.turn(HEARTBEAT_MS)
            late = self.world.scheduler.now_ms - since_ms > SESSION_MS // 2
            self.world.server.seen["late heartbeat"] += late
            self.service.heartbeat()


def offset_of(text: str) -> StreamOffset:
    """The offset of an entry of the offset log."""
    return StreamOffset.from_json(json.loads(text))


def text_of(offset: StreamOffset) -> str:
    """An offset as an entry of the offset log."""
    return json.dumps(offset.to_json(), separators=(",", ":"))
