"""A Spark driver: its calls to the source in Spark's order, with WAL, commit log, tasks and sink, which survive it.

    start      no WAL: initialOffset. A WAL without its commit: the last batch again
    loop       latestOffset(start) -> WAL -> partitions -> tasks write -> sink complete -> commit log
    end        a normal stop, or the JVM dies: leave. A kill of all: nothing. Tasks may always write on for a while

Each actor's code reads like Spark's; every call of the service has scheduling points inside it.
"""

import json
from collections.abc import Iterator

from coordinator.errors import CoopKafkaError, DataLossError
from coordinator.member.cooperative import Cooperative
from coordinator.member.decision import LOOK_MS
from coordinator.member.service import Service
from coordinator.plan.packing import Task as Packed
from coordinator.progress.ends import ended
from coordinator.progress.ownership import narrowed
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.ranges import HashRange
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.store import store_of
from coordinator.replies import Joining
from coordinator.settings import GroupSettings
from simulation import acknowledging, failures, pins, promises
from simulation.actors import Actor, Jvm, Stopped
from simulation.checkpoint import Checkpoint
from simulation.kafka import Record, SimulatedLog
from simulation.ordering import Ordering
from simulation.promises import Attempt
from simulation.redis_server import Line
from simulation.sink import Violation
from simulation.tasks import Ending, Task
from simulation.wishes import Wishes
from simulation.work import Work
from simulation.world import World

HEARTBEAT_MS = 1_000


class Driver:
    """One life of one application: JVM and reader process."""

    def __init__(
        self, world: World, work: Work, name: str, checkpoint: Checkpoint, wishes: Wishes, settings: GroupSettings
    ) -> None:
        self._work, self._settings = work, settings
        self.world, self.name, self.checkpoint, self.wishes = world, name, checkpoint, wishes
        self.pinned = checkpoint.pinned
        self.line = Line(world.server, self.trace)
        self.line.ran = self._ran
        self.ended = ""
        self._resets = world.invariants.reset
        self.creating = False  # it may have looked before there was a group, and be about to create one
        self._planned: list[str] = []  # the offsets in the offset log at its start
        self.tasks: list[Task] = []
        self.jvm = Jvm()
        self.hangs_since: int | None = None  # the time when its batch met a record that never ends
        self._planned_since, self._asked_ms, self._cuts = len(world.invariants.states) - 1, 0, 0
        self._ended_at = world.invariants.state  # the state when AvailableNow was last checked
        self._before_leaving = world.invariants.state  # the state when it began to end
        store = store_of(ScriptCalls.of(self.line, settings, now=lambda: world.server.now_ms))
        made = Cooperative if world.without_order else Service
        self.service = made(
            settings,
            pins.subscription(self.pinned, tuple(world.kafka.logs)),
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
        """Write one line of the story."""
        self.world.trace(f"{self.name}({self.checkpoint.name}) {what}")

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.main.alive

    @property
    def spare(self) -> bool:
        """Whether it waits for the end of another member."""
        return not self.service.state.life.nonce and self.service.state.life.other is not None

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

    # -- life ----------------------------------------------------------------------------------

    def _life(self) -> None:
        try:
            self.world.scheduler.turn()
            self._spark()
        except Stopped:
            self._end("stopped politely")
        except CoopKafkaError as error:
            failures.expect(self.world, self.checkpoint, error)
            self._end(f"failed: {error}")

    def _end(self, why: str) -> None:
        self.trace(why)
        self.ended = why
        if self.heart:
            self.world.scheduler.kill(self.heart)
        self._before_leaving = self.world.invariants.state
        self.service.leave()

    def _spark(self) -> None:
        ck = self.checkpoint
        self._planned = list(ck.wal)
        replays = bool(ck.wal) and len(ck.wal) - 1 not in ck.committed
        if self.wishes.available_now:
            self._open()
            with self.jvm.calling():
                self.service.set_targets()
        if not self._planned:
            self._initial()
        elif replays and not self._batch(len(self._planned) - 1):
            return
        while self._next_batch():
            interval = self.wishes.interval_ms
            self.world.scheduler.turn(interval and interval - self.world.scheduler.now_ms % interval)

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
        if any(pins.outside(lane.hashes, self.pinned) for _, lane in _offset(end)):
            raise Violation(f"PINNED: {self.name} plans hashes that it does not name: {end}")
        planned = [r for s in _offset(end).slices for r in self.world.kafka.read(s)]
        self._check_plan(planned)
        self.world.scheduler.turn()
        return self._batch(n)

    def _finished(self) -> None:
        targets = self.service.state.pace.targets or {}
        gated = self.service.state.growing.closed  # new partitions that must wait for older ones
        missing = [r for tp, end in targets.items() if tp not in gated for r in self.world.needed(tp, end)]
        missing = [r for r in missing if not self._ended_at.parked(r)]
        missing = [r for r in missing if not pins.outside(HashRange(r.hash, r.hash), self.pinned)]
        if missing and self._resets == self.world.invariants.reset:  # else an operator moved positions back meanwhile
            raise Violation(f"AVAILABLE NOW: {self.name} ended before {missing[0]} was in the sink")
        self._end("AvailableNow has ended")

    def _ran(self, verb: str) -> None:
        seen = self.world.invariants
        if verb == "finish":
            self._ended_at = seen.state
        if verb == "leave" and self.tasks:  # at once: an old copy may answer before `leave` returns
            end = self._true_end(_offset(self._planned[-1]))
            if end is not None:
                promises.kept_what_may_be_written(end, self._before_leaving, seen.state, seen.last_owner)

    def _true_end(self, end: StreamOffset) -> StreamOffset | None:
        """The end of the last batch, as far as its tasks or an earlier life ended it early; None if it is committed."""
        batch = self.service.state.batch
        if batch is None or batch.end != end:
            return None
        ends = self.service._inbox.ends(end)  # noqa: SLF001 - only looked at
        return ended(end, ends or {}) if batch.may_end_early else batch.bounded(end)

    def _concurrent(self, log: str) -> None:
        if not self.checkpoint.shared:
            raise Violation(f"CHECKPOINT: {self.name} found an entry of another driver in its {log}")
        self._end(f"another driver wrote the {log}")

    # -- Spark's calls -------------------------------------------------------------------------

    def _initial_offset(self) -> str:
        return _text(StreamOffset(self.world.group))

    def _initial(self) -> None:
        self._open()
        self.creating = True
        for _ in range(self.wishes.initial_calls):
            with self.jvm.calling():
                self.service.first_positions()
        self.creating = False

    def _latest(self, start: str) -> str | None:
        self._open()
        self._planned_since, self._asked_ms = len(self.world.invariants.states) - 1, self.world.scheduler.now_ms
        with self.jvm.calling():
            end = self.service.next_offset(_offset(start), self.wishes.limits)
        return None if end is None or _text(end) == start else _text(end)

    def _check_plan(self, planned: list[Record]) -> None:
        states, seen = self.world.invariants.states[self._planned_since :], self.world.server.seen
        before, now = states[0], states[-1]
        promises.nothing_confirmed(planned, states)
        seen["back-pressure"] += promises.holds_back(planned, states, self._settings.max_individual_commits)
        struck = [s for s in before.strikes & now.strikes if self.world.struck_at[s] < self._asked_ms - LOOK_MS]
        seen["tried alone"] += promises.keeps_away(planned, struck, before, now)
        quotas = self.service.state.reading.quotas
        seen.update(f"quota: {why}" for why in {q.why for q in quotas})
        cuts = sum(map(len, self.service.guesses._known.bounds.values()))  # noqa: SLF001 - only counted
        seen["cut by cost"] += cuts > self._cuts
        seen["merged by cost"] += cuts < self._cuts
        self._cuts = cuts

    def _batch(self, n: int) -> bool:
        """Run batch `n`; whether the query goes on."""
        world, ck = self.world, self.checkpoint
        if n == 0:
            self._initial()
        end = _offset(self._planned[n])
        self._open()
        if self._skipped(n):
            return self._log_commit(n)
        asked_at = len(world.invariants.states) - 1
        readable, packed = self._authorize(end)
        if self.wishes.initial_calls > 1 and self.service.tasks(end) != packed:
            raise Violation(f"PARTITIONS: two answers for batch {n}")
        read = [[(s, self._read(s)) for s in slices] for slices in packed]
        records = [r for slices in read for _, of_slice in slices for r in of_slice]
        under_way = self.service.state.batch
        early = bool(under_way and under_way.may_end_early)
        if under_way and under_way.done is not None:
            promises.nothing_confirmed(records, world.invariants.states[asked_at:])
            world.server.seen["replayed the rest"] += under_way.unacknowledged(readable).slices != readable.slices
        self.trace(f"batch {n} reads {' '.join(map(str, records))}" + ("" if readable == end else " (part skipped)"))
        asked, attempt = self.line.done["authorize"], ck.attempts.setdefault(n, Attempt())
        promises.no_more_than_before(attempt, asked, readable)
        ordering = Ordering(world, self.line, readable, (ck.name, n))
        if self.wishes.orders:
            ordering.reserve()
        self.tasks = [
            Task(world, self._work, self, slices, self._ending(end, number) if early else None)
            for number, slices in enumerate(read)
            if early or any(r for _, r in slices)
        ]
        while not all(t.done for t in self.tasks):
            world.scheduler.turn(30)
            if any(t.refused for t in self.tasks):
                self._end("failed: a task was refused")
                return False
            for _ in range(world.random.randint(1, 4) if self.wishes.acknowledges and world.chance(0.4) else 0):
                acknowledging.acknowledge(world, self.line, readable, (ck.name, n))
                acknowledging.acknowledge_rows(world, self.line, end, packed, (ck.name, n))
        self.hangs_since = None
        ordering.commit()
        records = [r for task in self.tasks for r in task.records]
        self._check_replay(attempt, end, readable, records)
        self._count_ends(early=len(records) < sum(len(r) for of_task in read for _, r in of_task))
        world.sink.complete(ck.name, n, records)
        self.trace(f"sink complete {n}")
        self.line.passes("the sink")
        world.in_peace()
        world.scheduler.turn()
        return self._log_commit(n)

    def _check_replay(self, attempt: Attempt, end: StreamOffset, readable: StreamOffset, records: list[Record]) -> None:
        """A replay has the same records; on request those that were not acknowledged."""
        batch, world = self.service.state.batch, self.world
        if batch and batch.done is not None:
            promises.only_the_rest(attempt, records, world.sink.completed, world.kafka.aged)
        elif not (batch and batch.unknown):
            promises.same_as_before(attempt, end, readable, records, world.kafka.aged)

    def _ending(self, end: StreamOffset, number: int) -> Ending:
        """How a task ends. If no task reaches the reader process, it may already know."""
        batch = self.service.state.batch
        if self.wishes.unreached == 1.0 and self.world.chance(0.3):
            self.service.no_task_connects()
        return Ending(end.digest, number, required=not (batch and batch.as_planned))

    def _count_ends(self, *, early: bool) -> None:
        """Count the fates of batches whose tasks may end slices early."""
        batch, seen = self.service.state.batch, self.world.server.seen
        seen["ended early"] += early
        seen["read to sealed ends"] += batch is not None and batch.ends is not None
        seen["ends unknown"] += bool(batch and batch.unknown)

    def _log_commit(self, n: int) -> bool:
        """Write batch `n` to the commit log; whether the query goes on."""
        if n in self.checkpoint.committed:
            self._concurrent("commit log")
            return False
        self.checkpoint.committed.add(n)
        self.trace(f"commit log {n}")
        self.world.scheduler.turn()
        return True

    def _skipped(self, n: int) -> bool:
        """Whether the sink has batch `n` already, of this or another checkpoint: then Spark requests no partitions."""
        ck, world = self.checkpoint, self.world
        if not (n < ck.taken or world.sink.skips(ck.name, n)):
            return False
        self.trace(f"the sink has batch {n} already")
        world.server.seen["the sink had it"] += 1
        ck.skipped |= n < ck.taken
        return True

    def _authorize(self, end: StreamOffset) -> tuple[StreamOffset, tuple[Packed, ...]]:
        before = self.world.invariants.state
        with self.jvm.calling():
            packed = self.service.tasks(end)
        batch = self.service.state.batch
        readable = narrowed(end, (batch and batch.readable) or {})
        promises.reads_what_is_owned(end, readable, before, self.world.invariants.state)
        if batch and not (batch.replayed or batch.trial) and end.by_key:
            in_order = promises.keeps_partition_order(self.service.state.owning.policy, end, packed)
            self.world.server.seen["partition order"] += in_order
        promises.reads_nothing_parked(readable, before, self.world.invariants.state)
        return readable, packed

    def _read(self, wanted: Slice) -> list[Record]:
        beginning = self.world.kafka.beginnings[wanted.topic_partition]
        if wanted.offsets.start < beginning and self._settings.fail_on_data_loss:
            raise DataLossError(f"{wanted} begins before {beginning}", "")
        return self.world.kafka.read(wanted)

    def _open(self) -> None:
        if self.heart is None:
            self.heart = self.world.scheduler.spawn(f"{self.name}'s heart", self._beat)

    def _beat(self) -> None:
        while True:
            self.world.scheduler.turn(HEARTBEAT_MS)
            self.service.heartbeat()


def _offset(text: str) -> StreamOffset:
    return StreamOffset.from_json(json.loads(text))


def _text(offset: StreamOffset) -> str:
    return json.dumps(offset.to_json(), separators=(",", ":"))
