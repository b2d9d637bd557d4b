"""One schedule: a topic, a group in a real Valkey, drivers, faults; then a quiet end in which all must arrive."""

from collections import Counter
from contextlib import closing
from itertools import chain
from random import Random

import redis

from coordinator.errors import (
    CoopKafkaError,
    FencedMemberError,
    GroupBusyError,
    RedisUnavailableError,
    StateLostError,
)
from coordinator.keys import GroupKeys
from coordinator.offset_spec import Earliest, Latest
from coordinator.redis_client import RedisClient
from coordinator.settings import GroupSettings
from coordinator.subscription import TopicPartition
from simulation import faults
from simulation.actors import BEGINNING_MS, Scheduler, VirtualClock
from simulation.driver import Checkpoint, Driver
from simulation.invariants import Invariants, look_script
from simulation.kafka import KEYS, Record, SimulatedKafka
from simulation.redis_server import Server
from simulation.sink import Sink, Violation
from simulation.tasks import Task
from simulation.wishes import Wishes

_QUIET_STEPS = 6_000
_HEARTBEAT_MS, _OUTAGE_MS, _RETENTION_MS = 1_000, 6_000, 3_600_000


class Valkey:
    """The connections that all schedules share."""

    def __init__(self, url: str) -> None:
        self.client = RedisClient(url)
        self.raw = redis.Redis.from_url(url)
        self.text = redis.Redis.from_url(url, decode_responses=True)
        self.look = look_script(self.text)

    def close(self) -> None:
        """Drop the connections."""
        with closing(self.raw), closing(self.text):
            self.client.close()


class World:
    """Everything of one schedule; the seed decides all of it."""

    def __init__(self, valkey: Valkey, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - it must replay
        self.group = f"simulation-{seed}"
        self.story: list[str] = []
        self.scheduler = Scheduler(self.random)
        self.clock = VirtualClock(self.scheduler)
        self.kafka = SimulatedKafka(self.random.randint(1, 2))
        self.sink = Sink(transactional=self.chance(0.4))
        self.starting = self.random.choice((Earliest(), Earliest(), Latest()))
        keys = GroupKeys(self.group)
        self.invariants = Invariants(valkey.look, keys, self.kafka, self.sink)
        self.server = Server(valkey.client, valkey.raw, keys, self.scheduler, self.random)
        self.server.forget()
        self.server.watch = self.invariants.check
        self.server.unreliable = self.random.choice((0.0, 0.03, 0.1))
        self.drivers: list[Driver] = []
        self.tasks: list[Task] = []
        self.checkpoints: list[Checkpoint] = []
        self._tokens = 0
        self._quiet = False
        self._available_now = self.chance(0.25)

    # -- a schedule ------------------------------------------------------------------------------

    def run(self) -> None:
        """Faults for a while, then the quiet end; raises `Violation`."""
        self.produce(self.random.randint(0, 8), faults.MOST_RECORDS)
        for _ in range(self.random.choice((1, 2, 2, 3))):
            self.start(self.new_checkpoint())
        frequency = self.random.choice((0.02, 0.05, 0.1))
        for _ in range(self.random.choice((100, 250, 500))):
            if self.chance(frequency):
                faults.draw(self)
            self.scheduler.step()
        self._end_quietly()

    def close(self) -> None:
        """End every actor, drop the group."""
        for actor in self.scheduler.actors:
            self.scheduler.kill(actor)
        self.server.forget()

    def _end_quietly(self) -> None:
        self._calm()
        for _ in range(_QUIET_STEPS):
            if not self.running:
                self.start(self.random.choice(self.idle_checkpoints() or [self.new_checkpoint()]))
            if self._arrived():
                break
            self.scheduler.step()
        else:
            raise Violation(f"STUCK: nothing arrives; positions {self.invariants.state.segments}")
        self._all_in_sink()

    def _calm(self) -> None:
        self.trace("--- quiet")
        self._quiet, self.server.unreliable, self.server.away_until_ms = True, 0.0, 0
        while self.server.ghosts:
            self.server.run_ghost()
        for actor in self.scheduler.actors:
            actor.wakes_at = min(actor.wakes_at, self.scheduler.now_ms + faults.SESSION_MS)
        self.produce(2 * len(self.kafka.logs), 2 * faults.MOST_RECORDS)

    def _arrived(self) -> bool:
        state = self.invariants.state
        ending = any(d.wishes.available_now for d in self.running)
        writing = any(a.alive for a in chain.from_iterable(t.actors for t in self.tasks))
        arrived = state.at(self.kafka.ends()) and state.run_id != "0"
        return arrived and not ending and not writing

    def _all_in_sink(self) -> None:
        for tp, end in self.kafka.ends().items():
            if missing := self.needed(tp, end):
                raise Violation(f"LOST: {missing[0]} and {len(missing) - 1} more never reached the sink")
            for key in KEYS:
                offsets = [r.offset for r in self.kafka.logs[tp][self.invariants.base[tp] :] if r.key == key]
                if offsets and self.sink.highest[key][tp] != offsets[-1]:
                    raise Violation(f"UPSERT: the sink keeps offset {self.sink.highest[key][tp]}, not {offsets[-1]}")

    # -- what drivers and faults ask -------------------------------------------------------------

    def trace(self, what: str) -> None:
        """One line of the story."""
        self.story.append(f"{self.scheduler.now_ms - BEGINNING_MS:7} {what}")

    def chance(self, probability: float) -> bool:
        """A decision of the seed."""
        return self.random.random() < probability

    def tokens(self, size: int) -> str:
        """Hex digits that nobody else is given."""
        self._tokens += 1
        return f"{self._tokens:0{2 * size}x}"

    def settings(self, wishes: Wishes, lost: bool) -> GroupSettings:
        """The settings of a driver; whose operator has read that nothing proves a position, if `lost`."""
        return GroupSettings(
            self.group,
            session_ms=faults.SESSION_MS,
            heartbeat_ms=_HEARTBEAT_MS,
            retention_ms=_RETENTION_MS,
            max_outage_ms=_OUTAGE_MS,
            on_state_loss="earliest" if lost or wishes.on_state_loss == "earliest" else "fail",
            tokens=self.tokens,
        )

    @property
    def running(self) -> list[Driver]:
        """The drivers that have not ended."""
        return [d for d in self.drivers if d.running]

    def new_checkpoint(self) -> Checkpoint:
        """The empty checkpoint of a new application."""
        self.checkpoints.append(Checkpoint(f"c{len(self.checkpoints)}"))
        return self.checkpoints[-1]

    def idle_checkpoints(self) -> list[Checkpoint]:
        """The checkpoints without a driver."""
        busy = [d.checkpoint for d in self.running]
        return [c for c in self.checkpoints if c not in busy]

    def start(self, checkpoint: Checkpoint) -> None:
        """A driver starts on this checkpoint."""
        checkpoint.shared |= any(d.checkpoint is checkpoint for d in self.running)
        available_now = self._available_now and not self._quiet and self.chance(0.7)
        wishes = Wishes.drawn(self.random, available_now=available_now)
        self.drivers.append(Driver(self, f"d{len(self.drivers)}", checkpoint, wishes))
        self.drivers[-1].trace(f"starts: {wishes}")

    def start_task(self, driver: Driver, records: list[Record]) -> Task:
        """A task of this driver begins."""
        self.tasks = [t for t in self.tasks if any(a.alive for a in t.actors)]
        self.tasks.append(Task(self, f"{driver.name}'s task", records))
        return self.tasks[-1]

    def orphan(self, driver: Driver) -> None:
        """The driver is gone: its tasks are killed, or write on."""
        for task in driver.tasks:
            if self.chance(0.5):
                for actor in task.actors:
                    self.scheduler.kill(actor)

    def produce(self, count: int, most: int) -> None:
        """Append records to logs that are not full."""
        for _ in range(count):
            tp = self.random.choice(list(self.kafka.logs))
            if len(self.kafka.logs[tp]) < most:
                self.kafka.produce(tp, self.random.choice((*KEYS, None)))

    def needed(self, tp: TopicPartition, end: int) -> list[Record]:
        """The records below `end` that no completed batch held."""
        return [r for r in self.kafka.logs[tp][self.invariants.base.get(tp, 0) : end] if r not in self.sink.completed]

    def expect(self, driver: Driver, error: CoopKafkaError) -> None:
        """Raise `Violation` unless what happened in this schedule may end a driver so."""
        seen: Counter[str] = self.server.seen
        match error:
            case GroupBusyError():
                expected = len(self.drivers) > 1
            case FencedMemberError():
                expected = driver.checkpoint.shared or seen["ghost"] > 0
            case RedisUnavailableError():
                expected = seen["outage"] > 0 or sum(seen[f] for f in ("refused", "lost", "ghost")) > 0
            case StateLostError():
                expected = seen["empty_redis"] > 0
                driver.checkpoint.lost = True
            case _:
                expected = False
        seen[type(error).__name__] += 1
        if not expected:
            raise Violation(f"ERROR: {driver.name} failed: {error}")
