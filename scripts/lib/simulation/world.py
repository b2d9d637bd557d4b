"""One schedule: a topic, a group in a real Valkey, drivers, faults; then a quiet end in which all must arrive."""

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from random import Random
from typing import cast

import redis

from coordinator.assignment.policies import MEMBER_POLICY, Policy
from coordinator.assignors.registry import assignors
from coordinator.errors import (
    CoopKafkaError,
    DataLossError,
    FencedMemberError,
    GroupBusyError,
    InconsistentGroupProtocolError,
    RedisUnavailableError,
    SinkSkippedBatchError,
    StateLostError,
)
from coordinator.member.invariants import check
from coordinator.offset_spec import Earliest, Latest
from coordinator.plan.poison import Strike
from coordinator.progress.slices import Slice
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GroupKeys
from coordinator.settings import GroupSettings
from coordinator.subscription import TopicPartition
from simulation import ending, faults, policies
from simulation.actors import BEGINNING_MS, Actor, Scheduler, VirtualClock
from simulation.driver import Checkpoint, Driver
from simulation.invariants import Invariants, look_script
from simulation.kafka import Record, SimulatedKafka
from simulation.producers import Producers
from simulation.redis_server import FATES, PEACEFUL_FATES, Server
from simulation.sink import Sink, Violation, Visible
from simulation.tasks import Task
from simulation.wishes import ASSIGNORS, EXCLUSIVE, Broken, Wishes
from simulation.work import Work

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
        self.producers = Producers(self.kafka, self.random)
        self.growth_grace_ms = self.random.choice((6_000, 40_000))
        self.sink = Sink(
            self.random.choice(list(Visible)), self.kafka.aged, self.producers.ordered, remembers=self.chance(0.5)
        )
        self.starting = self.random.choice((Earliest(), Earliest(), Latest()))
        keys = GroupKeys(self.group)
        self.invariants = Invariants(valkey.look, keys, self.kafka, self.sink)
        self.server = Server(valkey.client, valkey.raw, keys, self.scheduler, self.random)
        self._text = valkey.text
        self.server.forget()
        self.server.watch = self._watch
        self.peaceful = self.chance(0.12)
        self.faults = faults.mixture(self.random, peaceful=self.peaceful)
        self.server.fates = PEACEFUL_FATES if self.peaceful else FATES
        self.server.unreliable = self.random.choice((0.0, 0.03, 0.1))
        self.drivers: list[Driver] = []
        self.operators: list[Actor] = []
        self.tasks: list[Task] = []
        self.work = Work(self)
        self.struck_at: dict[Strike, int] = {}
        self.upgrade = policies.DONE
        self._protocol = ""
        self.checkpoints: list[Checkpoint] = []
        self._tokens = 0
        self.quiet = False
        self._longest_ms = 300_000 if self.peaceful else self.random.choice((300_000, 300_000, 12_000))
        self._available_now = self.chance(0.25)
        self._most_ics = self.random.choice((10_000, 10_000, 1, 3))
        self.invariants.assigned = self._assigned

    # -- a schedule ------------------------------------------------------------------------------

    def run(self) -> None:
        """Faults for a while, then the quiet end; raises `Violation`."""
        if self.chance(0.15) and not self.peaceful:
            policies.begin_plain(self)
            self.faults = faults.upgrading(self.faults)
        self.produce(self.random.randint(0, 8), faults.MOST_RECORDS)
        for _ in range(self.random.choice((1, 2, 2, 3))):
            self.start(self.new_checkpoint())
        frequency = self.random.choice((0.02, 0.05, 0.1))
        for _ in range(self.random.choice((100, 250, 500))):
            if self.chance(frequency):
                faults.draw(self)
            self.scheduler.step()
        ending.quietly(self)

    def close(self) -> None:
        """End every actor, drop the group."""
        for actor in self.scheduler.actors:
            self.scheduler.kill(actor)
        self.server.forget()

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

    def settings(self, wishes: Wishes, checkpoint: Checkpoint) -> GroupSettings:
        """The settings of a driver, whose operator has read how the last one on this checkpoint failed."""
        return GroupSettings(
            self.group,
            watch=check,
            session_ms=faults.SESSION_MS,
            longest_ms=self._longest_ms,
            batch_budget_ms=wishes.batch_budget_ms,
            max_lead_ms=wishes.max_lead_ms,
            heartbeat_ms=_HEARTBEAT_MS,
            retention_ms=_RETENTION_MS,
            max_outage_ms=_OUTAGE_MS,
            on_state_loss="earliest" if checkpoint.lost or wishes.on_state_loss == "earliest" else "fail",
            fail_on_data_loss=wishes.fail_on_data_loss and not checkpoint.aged,
            growth_grace_ms=self.growth_grace_ms,
            tokens=self.tokens,
            sharing=wishes.sharing,
            assignors=tuple(Broken(a) if wishes.broken else a for a in assignors(wishes.assignors)),
            max_individual_commits=self._most_ics,
        )

    @property
    def running(self) -> list[Driver]:
        """The drivers that have not ended."""
        return [d for d in self.drivers if d.running]

    def new_checkpoint(self) -> Checkpoint:
        """The empty checkpoint of a new application."""
        taken = self.random.choice((0,) * 7 + (1, 2))
        self.checkpoints.append(Checkpoint(f"c{len(self.checkpoints)}", taken=taken if not self.peaceful else 0))
        return self.checkpoints[-1]

    def idle_checkpoints(self) -> list[Checkpoint]:
        """The checkpoints without a driver."""
        busy = [d.checkpoint for d in self.running]
        return [c for c in self.checkpoints if c not in busy]

    def start(self, checkpoint: Checkpoint) -> None:
        """A driver starts on this checkpoint."""
        checkpoint.shared |= any(d.checkpoint is checkpoint for d in self.running)
        available_now = self._available_now and not self.quiet and self.chance(0.7)
        exclusive = not (self.quiet or self.peaceful) and self.chance(0.02)
        wishes = Wishes.drawn(
            self.random,
            available_now=available_now,
            sharing=None if self.upgrade == policies.DONE else self.upgrade == policies.DONE - 1,
            assignors=EXCLUSIVE if exclusive else self.random.choice(ASSIGNORS),
        )
        if self._most_ics < faults.MOST_RECORDS:
            wishes = replace(wishes, acknowledges=True)  # so that the cap is reached
        self.drivers.append(Driver(self, f"d{len(self.drivers)}", checkpoint, wishes))
        self.drivers[-1].trace(f"starts: {wishes}")

    def start_task(self, driver: Driver, slices: list[tuple[Slice, list[Record]]]) -> Task:
        """A task of this driver begins."""
        self.tasks = [t for t in self.tasks if any(a.alive for a in t.actors)]
        self.tasks.append(Task(self, driver, slices))
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
            self.producers.write(self.scheduler.now_ms, most)

    def _watch(self) -> None:
        self.invariants.check()
        for strike in self.invariants.state.strikes:
            if strike not in self.struck_at:
                self.struck_at[strike] = self.scheduler.now_ms
                self.server.seen["parked" if strike.parked else "struck"] += 1
        if not self.producers.founded:
            self.producers.founded = len(self.invariants.base)

    def _assigned(self, assignment: Mapping[str, str], policy: Policy) -> None:
        """A new assignment obeys the policies that are in force."""
        if policies.obeyed(assignment, policy, self._shares):
            self.server.seen["shared"] += 1
        protocol = str(self._text.hget(self.server.keys.meta, "protocol"))
        self.server.seen["broken assignor"] += bool(self._text.hexists(self.server.keys.meta, "failure"))
        policies.agreed(assignment, protocol, lambda member: self._said(member, "protocols"))
        self.server.seen["another assignor"] += protocol != self._protocol != ""
        self._protocol = protocol

    def _shares(self, member: str) -> bool:
        return self._said(member, MEMBER_POLICY) != "false"

    def _said(self, member: str, field: str) -> str:
        return str(self._text.hget(self.server.keys.member(member), field))

    def needed(self, tp: TopicPartition, end: int) -> list[Record]:
        """The records below `end` that no completed batch held, and should have."""
        return [r for r in self.promised(tp, end) if r not in self.sink.completed]

    def promised(self, tp: TopicPartition, end: int) -> list[Record]:
        """The records below `end` that the group owes to the sink."""
        return [
            r
            for r in self.kafka.logs[tp][self.invariants.base.get(tp, 0) : end]
            if not (self.kafka.aged(r) or r in self.sink.skipped)
        ]

    def in_peace(self) -> None:
        """Raise `Violation` if a record was done twice without a fault that allows it (rule: bounded-repeats)."""
        if self.peaceful and self.sink.repeated and not self.server.seen["crash"] and not self._lapsed():
            raise Violation(f"REPEAT: {self.sink.repeated} was completed twice, and nobody crashed, stopped or hung")

    def _lapsed(self) -> bool:
        """Whether a lease has ended, as it may where one of many threads is given no turn for long."""
        entries = cast(list[tuple[str, dict[str, str]]], self._text.xrange(self.server.keys.events))
        return any(fields["event"] == "expire" for _, fields in entries)

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
            case InconsistentGroupProtocolError():
                expected = any(d.wishes.assignors == EXCLUSIVE for d in self.drivers)
            case StateLostError():
                expected = seen["empty_redis"] > 0
                driver.checkpoint.lost = True
            case SinkSkippedBatchError():
                expected = driver.checkpoint.skipped
                driver.checkpoint.taken = 0
            case DataLossError():
                expected = seen["retention"] > 0
                driver.checkpoint.aged = True
            case _:
                expected = False
        seen[type(error).__name__] += 1
        if not expected:
            raise Violation(f"ERROR: {driver.name} failed: {error}")
